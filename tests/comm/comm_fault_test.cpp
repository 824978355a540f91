// Ranks that die, stop, hang, fail or dawdle: all ranks end in time, with one line and the right exit code.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/comm/fault_support.hpp"
#include "tests/comm/launch.hpp"

namespace rowmill::testing {
namespace {

const std::string program = ROWMILL_BIN_DIR "/comm_probe";

class CommFault : public ::testing::Test {
 protected:
  static Launched run(const std::string& scenario, int rank, int timeout_ms,
                      const std::vector<std::string>& launcher_options = {}) {
    return launch(4, launcher_options, {program, scenario, std::to_string(rank), std::to_string(timeout_ms)});
  }

  static void expect_silence_line(const Launched& outcome, int reporter, int silent) {
    const std::vector<std::string> lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    const std::string& line = lines[0];
    const std::string begin =
        "rowmill[" + std::to_string(reporter) + "]: error: rank " + std::to_string(silent) + " has been silent for ";
    EXPECT_EQ(line.substr(0, begin.size()), begin);
    EXPECT_NE(line.find("; it was last milling block 17"), std::string::npos) << line;
  }
};

TEST_F(CommFault, WithoutMisbehaviour_EndsWell) {
  const Launched outcome = run("none", -1, 2000);
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(lines_of_ours(outcome.errors).empty()) << outcome.errors;
}

TEST_F(CommFault, AKilledRank_EndsAllRanksWithOneLine) {
  for (const int killed : {2, 0}) {
    const Launched outcome = run("kill", killed, 2000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 128 + SIGKILL) << "as mpirun tells it";
    const std::vector<std::string> lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_NE(lines[0].find("SIGTERM"), std::string::npos) << lines[0];
    expect_none_left(program, "kill");
  }
}

TEST_F(CommFault, AKilledRankThatTheLauncherIgnores_IsNamedByOne) {
  const Launched outcome = run("kill", 2, 2000, {"--enable-recovery"});
  EXPECT_TRUE(outcome.ended);
  // No exit code is promised here: with that option mpirun says 0 whatever the ranks say.
  expect_silence_line(outcome, 0, 2);
  expect_none_left(program, "kill");
}

TEST_F(CommFault, AStoppedRank_IsNamedByRankZero) {
  const Launched outcome = run("stop", 2, 2000);
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.code, 4);
  expect_silence_line(outcome, 0, 2);
  expect_none_left(program, "stop");
}

TEST_F(CommFault, AStoppedRankZero_IsNamedByRankOne) {
  const Launched outcome = run("stop", 0, 2000);
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.code, 4);
  expect_silence_line(outcome, 1, 0);
  expect_none_left(program, "stop");
}

/// Stopped before MPI has started: only a rank that waits for the others inside MPI can tell, without knowing for whom.
TEST_F(CommFault, ARankThatIsStoppedBeforeItStarts_EndsAllWithOneLine) {
  for (const int stopped : {0, 2}) {
    const Launched outcome = run("stop-at-start", stopped, 2000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 4);
    const std::vector<std::string> lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_NE(lines[0].find("not all ranks have started"), std::string::npos) << lines[0];
    expect_none_left(program, "stop-at-start");
  }
}

/// In a call that does not come back, and cannot be left.
TEST_F(CommFault, ARankThatStopsInASumOfDeviceMemory_EndsAllWithOneLine) {
  for (const int stopped : {0, 2}) {
    const Launched outcome = run("stop-in-device-sum", stopped, 2000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 4);
    const std::vector<std::string> lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_NE(lines[0].find("a sum of device memory by MPI has not ended within 2.0 s"), std::string::npos) << lines[0];
    expect_none_left(program, "stop-in-device-sum");
  }
}

TEST_F(CommFault, AHangingRank_IsNamedByRankZero) {
  const Launched outcome = run("hang", 3, 2000);
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.code, 4);
  expect_silence_line(outcome, 0, 3);
  expect_none_left(program, "hang");
}

TEST_F(CommFault, AFailingRankWhileOthersReduce_EndsAllWithItsError) {
  for (const int rank : {0, 2}) {
    const Launched outcome = run("fail", rank, 20000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.errors, "rowmill[" + std::to_string(rank) + "]: error: block 17 cannot be read\n");
    expect_none_left(program, "fail");
  }
}

TEST_F(CommFault, RanksThatBeatButDoNotEndAfterAFailure_AreEndedWithItsLine) {
  for (const int rank : {0, 2}) {
    const Launched outcome = run("others-linger", rank, 2000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 3);
    const std::vector<std::string> lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_EQ(lines[0], "rowmill[" + std::to_string(rank) +
                            "]: error: the file is gone; thereafter not all ranks came to an end in time");
    expect_none_left(program, "others-linger");
  }
}

TEST_F(CommFault, ARankThatLeavesWithoutAWord_EndsAllRanks) {
  for (const int rank : {0, 2}) {
    const Launched outcome = run("throw", rank, 20000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.errors, "rowmill: error: not agreed on\n");
    expect_none_left(program, "throw");
  }
}

TEST_F(CommFault, ASlowRankThatPolls_IsNotCalledSilent) {
  for (const int rank : {0, 2}) {
    const Launched outcome = run("slow", rank, 1000);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(lines_of_ours(outcome.errors).empty()) << outcome.errors;
  }
}

}  // namespace
}  // namespace rowmill::testing
