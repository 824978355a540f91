// The main of tests on several ranks must not hide a failure of any rank, nor hang on one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/comm/launch.hpp"

namespace rowmill::testing {
namespace {

class MpiMain : public ::testing::Test {
 protected:
  /// Ranks wait for each other so many seconds; short where one never comes.
  static Launched run(const std::string& filter, const char* patience = "30") {
    ::setenv("ROWMILL_TEST_PATIENCE", patience, 1);
    return launch(3, {}, {ROWMILL_BIN_DIR "/mpi_main_probe", "--gtest_filter=Probe." + filter});
  }
};

TEST_F(MpiMain, WhenAllRanksSucceed_PrintsOnceAndExitsWithZero) {
  const Launched launched = run("Succeeds");
  EXPECT_TRUE(launched.ended);
  EXPECT_EQ(launched.code, 0);
  const std::size_t found = launched.output.find("PASSED");
  EXPECT_NE(found, std::string::npos) << launched.output;
  EXPECT_EQ(launched.output.find("PASSED", found + 1), std::string::npos) << launched.output;
}

TEST_F(MpiMain, WhenOneRankFails_SaysWhichAndWhat) {
  const Launched launched = run("FailsOnRankOne");
  EXPECT_TRUE(launched.ended);
  EXPECT_EQ(launched.code, 1);
  EXPECT_NE(launched.output.find("on rank 1:"), std::string::npos) << launched.output;
  EXPECT_NE(launched.output.find("rank one's own words"), std::string::npos) << launched.output;
  EXPECT_NE(launched.output.find("FAILED"), std::string::npos) << launched.output;
}

TEST_F(MpiMain, WhenOneRankThrowsWhileOthersWait_EndsAndSaysWhat) {
  const Launched launched = run("ThrowsWhileOthersWait", "2");
  EXPECT_TRUE(launched.ended);
  EXPECT_EQ(launched.code, 1);
  EXPECT_NE(launched.errors.find("thrown by rank one"), std::string::npos) << launched.errors;
}

TEST_F(MpiMain, WhenOneRankDies_Ends) {
  const Launched launched = run("DiesWhileOthersWait", "2");
  EXPECT_TRUE(launched.ended);
  EXPECT_NE(launched.code, 0);
}

}  // namespace
}  // namespace rowmill::testing
