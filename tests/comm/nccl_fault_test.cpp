// NCCL, or its double, that fails, hangs or never ends, and ranks that die in it: all ranks end in seconds, with one
// line and exit code 4.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "tests/comm/fault_support.hpp"
#include "tests/comm/launch.hpp"

namespace rowmill::testing {
namespace {

const std::string program = ROWMILL_BIN_DIR "/nccl_probe";

class NcclFault : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int ranks = 3;

  static Launched run(const std::string& scenario, int rank, int timeout_ms,
                      const std::vector<std::string>& launcher_options = {}) {
    return launch(ranks, launcher_options, {program, scenario, std::to_string(rank), std::to_string(timeout_ms)},
                  std::chrono::seconds(30));
  }

  /// Exit code 4 and one line that holds `words`.
  static void expect_end(const std::string& scenario, int rank, int timeout_ms, const std::string& words,
                         const std::string& more_words = {}) {
    const Launched outcome = run(scenario, rank, timeout_ms);
    EXPECT_TRUE(outcome.ended) << "hangs";
    EXPECT_EQ(outcome.code, 4);
    expect_line(outcome, words);
    expect_line(outcome, more_words);
    expect_none_left(program, scenario);
  }
  static void expect_line(const Launched& outcome, const std::string& words) {
    const std::vector<std::string> lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_NE(lines[0].find(words), std::string::npos) << lines[0];
  }
  std::string silence() const { return "rank " + std::to_string(GetParam()) + " has been silent for"; }
  std::string me() const { return "rowmill[" + std::to_string(GetParam()) + "]: error: "; }
};

INSTANTIATE_TEST_SUITE_P(OnRank, NcclFault, ::testing::Values(0, 2));

TEST_P(NcclFault, NoneAndALateRank_EndWell) {
  for (const char* scenario : {"none", "late"}) {
    const Launched outcome = run(scenario, GetParam(), 20000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_TRUE(lines_of_ours(outcome.errors).empty()) << outcome.errors;
  }
}

TEST_P(NcclFault, ARankThatNeverJoins_EndsAll) {
  expect_end("never-joins", GetParam(), 1500, "connecting the ranks by NCCL did not end within 1.5 s");
}

/// The others' time for the transfer ends too; but they cannot agree without the rank that hangs.
TEST_P(NcclFault, ARankThatHangsInACall_EndsAll) {
  expect_end("never-calls", GetParam(), 1500, silence());
}

TEST_P(NcclFault, AnAsynchronousError_EndsAllAndIsNamedByItsRank) {
  expect_end("error", GetParam(), 20000, me(), "failed: result 6");
}

TEST_P(NcclFault, ARefusedOperation_EndsAllAndIsNamedByItsRank) {
  expect_end("refused", GetParam(), 20000, me(), "ncclAllReduce failed: result 2");
}

TEST_P(NcclFault, ASumThatNeverEnds_EndsAllAtTheTimeout) {
  expect_end("endless", GetParam(), 1500, "combining the ranks by NCCL did not end within 1.5 s");
}

TEST_P(NcclFault, AnAbortThatHangsOnOneRank_EndsAllAfterAGrace) {
  expect_end("abort-hangs", GetParam(), 20000, me(), "failed: result 6");
}

TEST_P(NcclFault, AnAbortThatHangsOnEveryRank_EndsAllWithOneLine) {
  expect_end("abort-hangs-everywhere", GetParam(), 20000,
             "; thereafter NCCL did not give up its communicator within 1.0 s");
}

TEST_P(NcclFault, AStoppedRank_IsNamed) {
  expect_end("stop", GetParam(), 2000, silence());
}

TEST_P(NcclFault, AKilledRank_EndsAllWithOneLine) {
  const Launched outcome = run("kill", GetParam(), 20000);
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.code, 128 + SIGKILL) << "as mpirun tells it";
  expect_line(outcome, "SIGTERM");
  expect_none_left(program, "kill");
}

TEST_P(NcclFault, AKilledRankThatTheLauncherIgnores_EndsAllWithOneLine) {
  const Launched outcome = run("kill", GetParam(), 2000, {"--enable-recovery"});
  EXPECT_TRUE(outcome.ended);
  // No exit code is promised here: with that option mpirun says 0 whatever the ranks say.
  expect_line(outcome, silence());
  expect_none_left(program, "kill");
}

TEST(NcclFaultEverywhere, AnEndThatHangs_EndsAllWithOneLine) {
  const Launched outcome = launch(3, {}, {program, "destroy-hangs-everywhere", "0", "20000"}, std::chrono::seconds(30));
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(lines_of_ours(outcome.errors).size(), 1u) << outcome.errors;
}

}  // namespace
}  // namespace rowmill::testing
