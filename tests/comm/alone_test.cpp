// Without ranks: what needs no MPI, and that none is started.
#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/silence_watch.hpp"
#include "comm/world.hpp"

namespace rowmill {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(World, WithoutALauncher_IsAloneAndStartsNoMpi) {
  ASSERT_FALSE(launched_by_mpi());
  int argc = 0;
  char** argv = nullptr;
  const World world(argc, argv, seconds(1));
  EXPECT_EQ(world.rank(), 0);
  EXPECT_EQ(world.size(), 1);
  EXPECT_EQ(world.local_rank(), 0);
  EXPECT_EQ(world.local_size(), 1);
  EXPECT_EQ(world.nodes(), 1);
  EXPECT_TRUE(world.alone());
  int initialized = 1;
  MPI_Initialized(&initialized);
  EXPECT_EQ(initialized, 0);
}

TEST(World, AmongTasksOfSrunThatMpiDoesNotJoin_Refuses) {
  ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  int argc = 0;
  char** argv = nullptr;
  EXPECT_THROW(World(argc, argv, seconds(1)), Error);
  ::unsetenv("SLURM_STEP_NUM_TASKS");
}

TEST(World, UnderAnyLauncher_IsRecognised) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    ::setenv(name, "1", 1);
    EXPECT_TRUE(launched_by_mpi()) << name;
    ::unsetenv(name);
  }
}

TEST(Heartbeats, AreDescribedInWords) {
  EXPECT_EQ(describe({Heartbeat::Stage::milling, 17}), "milling block 17");
  EXPECT_EQ(describe({Heartbeat::Stage::milling, -1}), "milling");
  EXPECT_EQ(describe({Heartbeat::Stage::combining, 17}), "combining");
  EXPECT_EQ(describe({}), "starting");
}

TEST(Failures, WithoutRowPrecedeThoseWithOne) {
  const Failure rowless{ExitCode::failed, {}, {}}, early{ExitCode::input, 3, {}}, late{ExitCode::input, 4, {}};
  EXPECT_TRUE(precedes(rowless, early));
  EXPECT_FALSE(precedes(early, rowless));
  EXPECT_TRUE(precedes(early, late));
  EXPECT_FALSE(precedes(late, early));
  EXPECT_FALSE(precedes(rowless, rowless));
  EXPECT_FALSE(precedes(early, early));
}

TEST(SilenceWatch, CountsFromTheLastWord) {
  const SilenceWatch::Clock::time_point start;
  SilenceWatch watch(2, start);
  watch.look(start + milliseconds(100), seconds(1));
  watch.heard(1);
  watch.look(start + milliseconds(300), seconds(1));
  EXPECT_EQ(watch.silence(0), milliseconds(300));
  EXPECT_EQ(watch.silence(1), milliseconds(200));
}

TEST(SilenceWatch, OfAWatcherWhoSlept_BlamesNobody) {
  const SilenceWatch::Clock::time_point start;
  SilenceWatch watch(1, start);
  watch.look(start + seconds(3600), milliseconds(500));
  EXPECT_EQ(watch.silence(0), milliseconds(500));
  watch.look(start + seconds(3600) + milliseconds(10), milliseconds(500));
  EXPECT_EQ(watch.silence(0), milliseconds(510));
}

}  // namespace
}  // namespace rowmill
