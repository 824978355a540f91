// One process, no MPI.
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/error.hpp"
#include "io/row_writer.hpp"
#include "tests/io_parallel/row_fixture.hpp"

namespace rowmill::testing {
namespace {

class RowWriterAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rowmill_rows_XXXXXX";
    folder = ::mkdtemp(name);
    path = folder + "/out.h5";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string folder, path;
};

TEST_F(RowWriterAlone, WritesWithoutMpi) {
  RowWriter writer(path, {"scores", 5}, 7, {});
  writer.write({4, 3}, values_of<double>({4, 3}, 5));
  writer.write({0, 4}, values_of<float>({0, 4}, 5));
  EXPECT_FALSE(std::filesystem::exists(path)) << "named before it was whole";
  writer.finish();
  expect_rows(path, "scores", 7, 5, 8);
  EXPECT_EQ(files_in(folder).size(), 1u);
  int initialized = 1;
  MPI_Initialized(&initialized);
  EXPECT_EQ(initialized, 0);
}

TEST_F(RowWriterAlone, WhereFilesMayNotBeSoLong_FailsAtOnceAndLeavesNothing) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 64 << 10;
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(RowWriter(path, {"scores", 2}, 100000, {}), Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(files_in(folder).empty());
}

/// Fills a small disk of its own; ends as a program does, so that what HDF5 does at its end is seen too.
[[noreturn]] void fill_small_disk(const std::string& folder) {
  constexpr int kNotPermitted = 77;
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=256k") != 0) {
    std::exit(kNotPermitted);
  }
  std::string message;
  try {
    RowWriter writer(folder + "/out.h5", {"scores", 2}, 100000, {});
    writer.write({0, 100000}, values_of<double>({0, 100000}, 2));
  } catch (const Error& error) {
    message = error.what();
  }
  const bool right = message == "cannot write rows 0:100000 of " + folder + "/out.h5: No space left on device";
  if (!right) std::fprintf(stderr, "said: %s\n", message.c_str());
  std::exit(right && files_in(folder).empty() ? 0 : 1);
}

TEST_F(RowWriterAlone, OnAFullDisk_SaysSoAndLeavesNothing) {
  const pid_t child = ::fork();
  if (child == 0) fill_small_disk(folder);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "making a small disk is not permitted";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RowWriterAlone, RefusesRowsOutsideAndValuesOfAnotherSize) {
  RowWriter writer(path, {"scores", 2}, 10, {});
  const std::vector<double> four(4), five(5);
  EXPECT_THROW(writer.write({9, 2}, four), std::invalid_argument);
  EXPECT_THROW(writer.write({-1, 2}, four), std::invalid_argument);
  EXPECT_THROW(writer.write({0, 2}, five), std::invalid_argument);
}

TEST_F(RowWriterAlone, AmongSeveralWithoutMpi_IsAMistakeOfTheProgram) {
  RowWriterOptions options;
  options.alone = false;
  EXPECT_THROW(RowWriter(path, {"scores", 2}, 10, options), std::logic_error);
}

}  // namespace
}  // namespace rowmill::testing
