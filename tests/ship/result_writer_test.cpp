#include "io/result_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill {
namespace {

using test::ScratchFolder;
using test::SmallDisk;

template <typename Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return {ExitCode::ok, ""};
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ResultSink sink_of(std::int64_t rows, std::int64_t columns) {
  ResultSink sink;
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  std::iota(values.begin(), values.end(), 0.5);
  sink.add("matrix", {rows, columns}, values);
  return sink;
}

/// As a stranger would read it: open, shape, native double values.
std::vector<double> read_doubles(const std::string& path, const std::string& name, std::vector<hsize_t>& shape) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
  EXPECT_GT(H5Tequal(type, H5T_NATIVE_DOUBLE), 0) << name;
  shape.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)), -7777.0);
  EXPECT_GE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Sclose(space), H5Tclose(type), H5Dclose(dataset), H5Fclose(file);
  return values;
}

TEST(ResultWriter, WritesValuesBitForBit) {
  const ScratchFolder folder;
  ResultSink sink;
  const std::vector<double> values{0.1, -0.0, 5e-324, std::numeric_limits<double>::infinity(), -1e308, std::nan("")};
  sink.add("odd", {2, 3}, values);
  sink.add("one", {}, {42.25});
  sink.add("nothing", {0, 4}, {});
  sink.add("deep/er", {1}, {-3});
  write_result(folder / "r.h5", sink, {}, false);

  std::vector<hsize_t> shape;
  const auto odd = read_doubles(folder / "r.h5", "odd", shape);
  EXPECT_EQ(shape, (std::vector<hsize_t>{2, 3}));
  ASSERT_EQ(odd.size(), values.size());
  EXPECT_EQ(std::memcmp(odd.data(), values.data(), sizeof(double) * values.size()), 0);
  EXPECT_EQ(read_doubles(folder / "r.h5", "one", shape), std::vector<double>{42.25});
  EXPECT_TRUE(shape.empty());
  EXPECT_TRUE(read_doubles(folder / "r.h5", "nothing", shape).empty());
  EXPECT_EQ(shape, (std::vector<hsize_t>{0, 4}));
  EXPECT_EQ(read_doubles(folder / "r.h5", "deep/er", shape), std::vector<double>{-3});
  EXPECT_EQ(folder.names(), std::set<std::string>{"r.h5"});
}

TEST(ResultWriter, H5pyReadsValuesTextAndNumbers) {
  if (std::system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3-h5py is not installed";
  const ScratchFolder folder;
  ResultSink sink = sink_of(3, 2);
  sink.attribute("command", std::string("{\"ä\": \"µ→\"}"));
  sink.attribute("empty", std::string());
  sink.attribute("long", std::string(200000, 'x'));
  sink.attribute("rows", std::int64_t{9007199254740993});
  sink.attribute("seconds", 0.1);
  write_result(folder / "r.h5", sink, {"Größe", "", "gene 3"}, false);
  std::ofstream(folder / "check.py") << R"(
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'r') as f:
    assert sorted(f) == ['column_names', 'matrix'], list(f)
    assert f['matrix'].dtype == np.dtype('<f8') and f['matrix'].chunks is None
    assert (f['matrix'][:] == np.arange(6).reshape(3, 2) + 0.5).all()
    assert list(f['column_names'].asstr()[:]) == ['Größe', '', 'gene 3']
    a = f.attrs
    assert sorted(a) == ['command', 'empty', 'long', 'rows', 'seconds'], list(a)
    assert a['command'] == '{"ä": "µ→"}' and a['empty'] == '' and a['long'] == 'x' * 200000
    assert a['rows'] == 9007199254740993 and a['rows'].dtype == np.int64
    assert a['seconds'] == 0.1 and a['seconds'].dtype == np.float64
)";
  EXPECT_EQ(std::system(("/usr/bin/python3 " + (folder / "check.py") + " " + (folder / "r.h5")).c_str()), 0);
}

TEST(ResultWriter, EqualResultsGiveEqualFiles) {
  const ScratchFolder folder;
  ResultSink sink = sink_of(5, 7);
  sink.attribute("rows", std::int64_t{5});
  write_result(folder / "a.h5", sink, {"x"}, false);
  write_result(folder / "b.h5", sink, {"x"}, false);
  EXPECT_EQ(contents(folder / "a.h5"), contents(folder / "b.h5"));
}

TEST(ResultWriter, WithoutOverwrite_KeepsWhatIsThere) {
  const ScratchFolder folder;
  std::ofstream(folder / "r.h5") << "precious";
  const Error error = error_of([&] { write_result(folder / "r.h5", sink_of(1, 1), {}, false); });
  EXPECT_EQ(error.code(), ExitCode::usage);
  EXPECT_THAT(error.what(), testing::HasSubstr("--overwrite"));
  EXPECT_EQ(contents(folder / "r.h5"), "precious");
  EXPECT_EQ(folder.names(), std::set<std::string>{"r.h5"});
  write_result(folder / "r.h5", sink_of(1, 1), {}, true);
  std::vector<hsize_t> shape;
  EXPECT_EQ(read_doubles(folder / "r.h5", "matrix", shape), std::vector<double>{0.5});
}

TEST(ResultWriter, NameAsLongAsTheSystemAllows_IsWritten) {
  const ScratchFolder folder;
  const std::string name(255, 'n');
  write_result(folder / name, sink_of(1, 1), {}, false);
  EXPECT_EQ(folder.names(), std::set<std::string>{name});
}

TEST(ResultWriter, DiskFull_FailsNamingItAndLeavesNothing) {
  const ScratchFolder folder;
  const SmallDisk disk(folder.path(), 65536);
  if (!disk.mounted()) GTEST_SKIP() << "a small tmpfs cannot be mounted here (not root)";
  const Error error = error_of([&] { write_result(folder / "r.h5", sink_of(300, 300), {}, false); });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(folder / "r.h5"), testing::HasSubstr("No space left")));
  EXPECT_EQ(folder.names(), std::set<std::string>{});
  write_result(folder / "r.h5", sink_of(3, 3), {}, false);  // and what fits is still written
  EXPECT_EQ(folder.names(), std::set<std::string>{"r.h5"});
}

TEST(ResultWriter, DiskFullWhileOverwriting_KeepsTheOldResult) {
  const ScratchFolder folder;
  const SmallDisk disk(folder.path(), 65536);
  if (!disk.mounted()) GTEST_SKIP() << "a small tmpfs cannot be mounted here (not root)";
  write_result(folder / "r.h5", sink_of(3, 3), {}, false);
  const std::string before = contents(folder / "r.h5");
  EXPECT_EQ(error_of([&] { write_result(folder / "r.h5", sink_of(300, 300), {}, true); }).code(), ExitCode::failed);
  EXPECT_EQ(contents(folder / "r.h5"), before);
  EXPECT_EQ(folder.names(), std::set<std::string>{"r.h5"});
}

/// As a full disk, but without root: the kernel refuses to make a file longer than this.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit lower{bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lower);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  void (*previous_handler_)(int) = nullptr;
};

TEST(ResultWriter, WriteThatFailsHalfway_LeavesNothing) {
  const ScratchFolder folder;
  Error error{ExitCode::ok, ""};
  {
    const FileSizeLimit limit(100000);
    error = error_of([&] { write_result(folder / "r.h5", sink_of(300, 300), {}, false); });
  }
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(folder / "r.h5"), testing::HasSubstr("too large")));
  EXPECT_EQ(folder.names(), std::set<std::string>{});
}

TEST(CheckOutput, RefusesWhatIsInTheWay) {
  const ScratchFolder folder;
  std::ofstream(folder / "file") << "x";
  mkdir((folder / "folder").c_str(), 0755);
  mkfifo((folder / "pipe").c_str(), 0644);
  const auto refused = [&](const std::string& path, bool overwrite, const std::string& because) {
    const Error error = error_of([&] { check_output(path, overwrite, ""); });
    EXPECT_EQ(error.code(), ExitCode::usage) << path;
    EXPECT_THAT(error.what(), testing::HasSubstr(because)) << path;
  };
  refused(folder / "file", false, "exists");
  refused(folder / "folder", true, "is a folder");
  refused(folder / "pipe", true, "not a regular file");
  refused("/dev/null", true, "not a regular file");
  refused(folder / "missing/r.h5", true, "No such file or directory");
  refused(folder / "file/r.h5", true, "is not a folder");
  refused(folder / "", false, "names no file");
  refused("", false, "names no file");
  EXPECT_NO_THROW(check_output(folder / "file", true, folder / "other"));
  EXPECT_NO_THROW(check_output(folder / "new.h5", false, ""));
}

TEST(CheckOutput, RefusesTheInputItself_UnderAnyName) {
  const ScratchFolder folder;
  std::ofstream(folder / "input") << "x";
  ASSERT_EQ(symlink("input", (folder / "symbolic").c_str()), 0);
  ASSERT_EQ(link((folder / "input").c_str(), (folder / "hard").c_str()), 0);
  for (const char* name : {"input", "./input", "symbolic", "hard"}) {
    const Error error = error_of([&] { check_output(folder / name, true, folder / "input"); });
    EXPECT_EQ(error.code(), ExitCode::usage) << name;
    EXPECT_THAT(error.what(), testing::HasSubstr("the input itself")) << name;
  }
}

TEST(CheckOutput, RefusesAFolderThatCannotBeWritten) {
  const ScratchFolder folder;
  const SmallDisk disk(folder.path(), 65536, true);
  if (!disk.mounted()) {  // not root, for whom permissions count
    ASSERT_EQ(chmod(folder.path().c_str(), 0500), 0);
  }
  const Error error = error_of([&] { check_output(folder / "r.h5", false, ""); });
  EXPECT_EQ(error.code(), ExitCode::usage);
  EXPECT_THAT(error.what(), testing::HasSubstr(folder.path().string()));
  chmod(folder.path().c_str(), 0700);
}

}  // namespace
}  // namespace rowmill
