// Virtual data sets, external links and external raw storage: read where everything lies in the file's own folder.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

class Companions : public ::testing::Test {
 protected:
  Companions() {
    std::filesystem::create_directory(folder_ / "in");
    std::filesystem::create_directory(folder_ / "in/below");
    std::filesystem::create_directory(folder_ / "out");
    for (Model* model : {&first_, &second_}) *model = random_model(random_, {6, 4}, {DType::f32, false});
  }

  /// /X of in/v.h5: the rows of these files, one after the other.
  void write_virtual(const std::vector<std::string>& sources, hsize_t rows_each = 6) {
    const hsize_t shape[2] = {rows_each * sources.size(), 4}, part[2] = {rows_each, 4};
    const hid_t space = H5Screate_simple(2, shape, nullptr), source_space = H5Screate_simple(2, part, nullptr);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const hsize_t start[2] = {i * rows_each, 0};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, part, nullptr);
      ASSERT_GE(H5Pset_virtual(list, space, sources[i].c_str(), "/X", source_space), 0);
    }
    H5Sselect_all(space);
    create("v.h5", space, list);
    H5Sclose(source_space);
  }

  void create(const std::string& name, hid_t space, hid_t list) {
    const hid_t file = H5Fcreate((folder_ / ("in/" + name)).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t dataset = H5Dcreate2(file, "X", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
  }

  /// /X of in/e.h5: 6 x 4 floats of which `bytes` are said to lie in the raw file.
  void write_external(const std::string& raw, hsize_t bytes) {
    const hsize_t shape[2] = {6, 4};
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    ASSERT_GE(H5Pset_external(list, raw.c_str(), 4, bytes), 0);
    create("e.h5", H5Screate_simple(2, shape, nullptr), list);
  }

  void write_link(const std::string& target) {
    const hid_t file = H5Fcreate((folder_ / "in/l.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(H5Lcreate_external(target.c_str(), "/X", file, "X", H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Fclose(file);
  }

  void expect_refused(const std::string& name, const std::string& words) {
    const Error e = error_of([&] { plan_input(request_for(folder_ / ("in/" + name + ":/X"))); });
    EXPECT_EQ(e.code(), ExitCode::input);
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }

  Model both() const {
    Model model = first_;
    model.shape[0] = 12;
    model.bytes.insert(model.bytes.end(), second_.bytes.begin(), second_.bytes.end());
    return model;
  }

  ScratchFolder folder_;
  std::mt19937_64 random_{fresh_seed()};
  Model first_, second_;
};

TEST_F(Companions, VirtualDataSet_OfSourcesBesideAndBelow_IsRead) {
  write_model(folder_ / "in/a.h5", first_, {});
  write_model(folder_ / "in/below/b.h5", second_, {.chunk = {2, 2}, .gzip = 1});
  write_virtual({"a.h5", "below/b.h5"});
  const auto source = open_source(request_for(folder_ / "in/v.h5:/X"));
  EXPECT_EQ(source->info().storage, "virtual");
  EXPECT_TRUE(reads_as(*source, both(), {0, 12}));
  EXPECT_TRUE(reads_as(*source, both(), {4, 5}));
}

TEST_F(Companions, VirtualDataSet_OfMoreSourcesThanMayBeOpen_IsReadWhole) {
  std::vector<std::string> names;
  Model all = first_;
  all.bytes.clear();
  for (int i = 0; i < 400; ++i) {
    Model part = random_model(random_, {6, 4}, {DType::f32, false});
    names.push_back("s" + std::to_string(i) + ".h5");
    write_model(folder_ / ("in/" + names.back()), part, {});
    all.bytes.insert(all.bytes.end(), part.bytes.begin(), part.bytes.end());
  }
  all.shape[0] = 2400;
  write_virtual(names);
  // both limits: the helper raises the one that it may raise
  const rlimit few = {128, 128};
  const pid_t child = fork();
  if (child == 0) {
    ::setrlimit(RLIMIT_NOFILE, &few);
    bool whole = false;
    try {
      const auto source = open_source(request_for(folder_ / "in/v.h5:/X"));
      whole = reads_as(*source, all, {0, 2400}) && reads_as(*source, all, {701, 900}) && source->bytes_read() > 0;
    } catch (const std::exception& e) {
      std::fputs(e.what(), stderr);
    }
    _exit(whole ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Companions, VirtualSourceThatIsNotThere_IsAnErrorNotFillValues) {
  write_model(folder_ / "in/a.h5", first_, {});
  write_virtual({"a.h5", "gone.h5"});
  expect_refused("v.h5", "\"gone.h5\" is not there");

  // nor is it passed over for the only data set that can be read
  const hid_t file = H5Fopen((folder_ / "in/v.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, std::array<hsize_t, 1>{3}.data(), nullptr);
  H5Dclose(H5Dcreate2(file, "other", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(file);
  const Error e = error_of([&] { plan_input(request_for(folder_ / "in/v.h5")); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_NE(std::string(e.what()).find(":/X: its virtual source \"gone.h5\""), std::string::npos) << e.what();
}

TEST_F(Companions, VirtualSourceThatIsTooSmall_IsAnErrorNotFillValues) {
  write_model(folder_ / "in/a.h5", first_, {});
  write_virtual({"a.h5"}, 7);
  expect_refused("v.h5", "smaller than the part that is mapped");
}

TEST_F(Companions, VirtualSourceWithoutTheDataSet_IsAnErrorNotFillValues) {
  write_model(folder_ / "in/a.h5", first_, {}, "/Y");
  write_virtual({"a.h5"});
  expect_refused("v.h5", "is not there");
}

TEST_F(Companions, VirtualSourcesNamedByAPattern_AreRefused) {
  const hsize_t shape[2] = {6, 4}, most[2] = {H5S_UNLIMITED, 4}, start[2] = {0, 0}, count[2] = {H5S_UNLIMITED, 1};
  const hid_t space = H5Screate_simple(2, shape, most), source_space = H5Screate_simple(2, shape, nullptr);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, shape, count, shape);
  ASSERT_GE(H5Pset_virtual(list, space, "a-%b.h5", "/X", source_space), 0);
  create("v.h5", H5Screate_simple(2, shape, most), list);
  H5Sclose(space);
  H5Sclose(source_space);
  expect_refused("v.h5", "pattern");
}

TEST_F(Companions, AnythingOutsideTheFolder_IsRefused) {
  write_model(folder_ / "out/a.h5", first_, {});
  std::filesystem::create_symlink(folder_ / "out/a.h5", folder_ / "in/link.h5");
  for (const std::string& name : {std::string("../out/a.h5"), folder_ / "out/a.h5", std::string("link.h5")}) {
    SCOPED_TRACE(name);
    write_virtual({name});
    expect_refused("v.h5", "outside the file's own folder");
    write_link(name);
    expect_refused("l.h5", "outside the file's own folder");
    write_external(name, 96);
    expect_refused("e.h5", "outside the file's own folder");
  }
}

TEST_F(Companions, ExternalLink_WithinTheFolder_IsFollowed) {
  for (const int gzip : {0, 1}) {
    write_model(folder_ / "in/a.h5", first_, {.chunk = {3, 4}, .gzip = gzip});
    write_link("a.h5");
    const auto source = open_source(request_for(folder_ / "in/l.h5:/X"));
    EXPECT_TRUE(reads_as(*source, first_, {0, 6}));
  }
  write_model(folder_ / "in/a.h5", first_, {});
  const auto source = open_source(request_for(folder_ / "in/l.h5:/X"));
  EXPECT_TRUE(reads_as(*source, first_, {1, 4}));
}

TEST_F(Companions, ExternalLink_ToNothing_IsRefused) {
  write_link("gone.h5");
  expect_refused("l.h5", "\"gone.h5\", which is not there");
}

TEST_F(Companions, ExternalRawStorage_WithinTheFolder_IsRead) {
  std::ofstream raw(folder_ / "in/raw", std::ios::binary);
  raw << "skip";
  raw.write(reinterpret_cast<const char*>(first_.bytes.data()), 96);
  raw.close();
  write_external("raw", 96);
  const auto source = open_source(request_for(folder_ / "in/e.h5:/X"));
  EXPECT_TRUE(reads_as(*source, first_, {0, 6}));
  std::filesystem::resize_file(folder_ / "in/raw", 99);
  expect_refused("e.h5", "holds only 99 bytes");
  std::filesystem::remove(folder_ / "in/raw");
  expect_refused("e.h5", "is not there");
}

}  // namespace
}  // namespace rowmill::test
