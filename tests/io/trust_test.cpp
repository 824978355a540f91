// What a stranger's file may not make happen, and files that others hold: plugins, links that turn in circles, writers,
// locks.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

class Trust : public ::testing::Test {
 protected:
  void expect_input_error(const InputRequest& request, const std::string& words) {
    const Error e = error_of([&] { plan_input(request); });
    EXPECT_EQ(e.code(), ExitCode::input);
    EXPECT_NE(std::string(e.what()).find("a.h5"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }

  /// /X of a file: /X of another, or of itself.
  void write_virtual(const std::string& name, const std::string& of) {
    const hsize_t shape[2] = {20, 3};
    const hid_t space = H5Screate_simple(2, shape, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
    EXPECT_GE(H5Pset_virtual(list, space, of.c_str(), "/X", space), 0);
    const hid_t out = H5Fcreate((folder_ / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(H5Dcreate2(out, "X", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(out);
  }

  ScratchFolder folder_;
  std::mt19937_64 random_{fresh_seed()};
  Model model_ = random_model(random_, {20, 3}, {DType::f32, false});
};

/// The environment of the program does not reach the helper; this one names the plugin's folder in the helper's own.
class Plugins : public Trust {
 protected:
  std::string helper_that_finds_them() {
    const std::string path = folder_ / "helper.sh";
    std::ofstream(path) << "#!/bin/sh\nexport HDF5_PLUGIN_PATH='" << ROWMILL_PLUGINS << "' ROWMILL_PLUGIN_NOTE='"
                        << note_ << "'\nexec '" << find_helper("rowmill-h5-helper") << "' \"$@\"\n";
    ::chmod(path.c_str(), 0755);
    return path;
  }

  const std::string note_ = folder_ / "note";
};

TEST_F(Plugins, AreNeverLoadedForAFile) {
  // HDF5 loads it, as long as nobody tells it not to: this test can fail
  ::setenv("ROWMILL_PLUGIN_NOTE", note_.c_str(), 1);
  H5PLappend(ROWMILL_PLUGINS);
  ASSERT_GT(H5Zfilter_avail(32999), 0);
  ::unsetenv("ROWMILL_PLUGIN_NOTE");
  ASSERT_TRUE(std::filesystem::remove(note_));

  const auto add_filter = [](hid_t list) { H5Pset_filter(list, 32999, H5Z_FLAG_MANDATORY, 0, nullptr); };
  write_model(folder_ / "a.h5", model_, {.chunk = {10, 3}, .more = add_filter});
  write_virtual("virtual_a.h5", "a.h5");  // HDF5 reads it, and so its source
  for (const char* name : {"a.h5", "virtual_a.h5"}) {
    InputRequest request = request_for((folder_ / name) + ":/X");
    request.helper = helper_that_finds_them();
    const Error e = error_of([&] {
      const auto source = open_source(request);
      const PoisonedBuffer buffer(source->bytes_for({0, 20}));
      source->read({0, 20}, buffer.span());
    });
    EXPECT_EQ(e.code(), ExitCode::input);
    EXPECT_NE(std::string(e.what()).find("a.h5:/X"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("filter"), std::string::npos) << e.what();
    EXPECT_FALSE(std::filesystem::exists(note_)) << "the plugin was loaded";
  }
}

TEST_F(Trust, LinksThatLeadToThemselves_AreInputErrors) {
  const hid_t out = H5Fcreate((folder_ / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/to_b", out, "/to_a", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/to_a", out, "/to_b", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/", out, "/root", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("a.h5", "/out", out, "/out", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(out);
  for (const char* name : {"/to_a", "/to_b", "/root/root/to_a", "/out"}) {
    expect_input_error(request_for((folder_ / "a.h5:") + name), "too many links");
  }
  expect_input_error(request_for(folder_ / "a.h5"), "no numeric data set");
}

TEST_F(Trust, VirtualSourcesThatLeadToThemselves_AreInputErrors) {
  write_virtual("a.h5", "a.h5");
  expect_input_error(request_for(folder_ / "a.h5:/X"), "virtual");
}

/// Its metadata may lie half in the writer's memory.
TEST_F(Trust, AFileThatIsOpenForWriting_IsRefusedUntilItIsClosed) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  for (const bool swmr : {false, true}) {
    write_model(folder_ / "a.h5", model_, {});
    const hid_t out = H5Fcreate((folder_ / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hsize_t shape[2] = {20, 3}, most[2] = {H5S_UNLIMITED, 3}, chunk[2] = {10, 3};
    const hid_t space = H5Screate_simple(2, shape, most), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, chunk);
    const hid_t dataset = H5Dcreate2(out, "X", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (swmr) H5Fstart_swmr_write(out);
    H5Dwrite(dataset, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, model_.bytes.data());
    H5Fflush(out, H5F_SCOPE_GLOBAL);
    expect_input_error(request_for(folder_ / "a.h5"), "already open for write");
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(out);
    EXPECT_TRUE(reads_as(*open_source(request_for(folder_ / "a.h5")), model_, {0, 20}));
  }
  H5Pclose(access);
}

TEST_F(Trust, AFileThatAnotherHasLocked_IsRead) {
  write_model(folder_ / "a.h5", model_, {});
  const int other = ::open((folder_ / "a.h5").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_TRUE(reads_as(*open_source(request_for(folder_ / "a.h5")), model_, {0, 20}));
  ::close(other);
}

}  // namespace
}  // namespace rowmill::test
