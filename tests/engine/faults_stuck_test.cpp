// A device that stops working on one rank while another fails: all ranks end, with one line.
#include <gtest/gtest.h>

#include <string>

#include "tests/comm/fault_support.hpp"
#include "tests/comm/launch.hpp"

namespace rowmill::testing {
namespace {

const std::string program = ROWMILL_BIN_DIR "/engine_faults_probe";

Launched probe(const std::string& where, int stuck, int failing) {
  return launch(3, {}, {program, where, std::to_string(stuck), std::to_string(failing), "2000"},
                std::chrono::seconds(30));
}

TEST(StuckDevice, Nowhere_EndsWell) {
  for (const char* where : {"milling", "combining"}) {
    const Launched outcome = probe(where, -1, -1);
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
  }
}

/// The main thread of the stuck rank still beats: only who failed can tell that it does not come.
TEST(StuckDevice, WhileAnotherRankFails_EndsAllWithThatFailure) {
  for (const int stuck : {0, 2}) {
    const Launched outcome = probe("milling", stuck, 1);
    EXPECT_TRUE(outcome.ended) << "hangs";
    EXPECT_EQ(outcome.code, 3);
    const auto lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_EQ(lines[0], "rowmill[1]: error: the file is gone; thereafter not all ranks came to an end in time");
    expect_none_left(program, "milling");
  }
}

/// Leaving the sum the rank waits for its device without a beat: whoever is first, its silence or the failure is said.
TEST(StuckDevice, BeforeASumWhileAnotherRankFails_EndsAllWithOneLine) {
  for (const int stuck : {0, 2}) {
    const Launched outcome = probe("combining", stuck, 1);
    EXPECT_TRUE(outcome.ended) << "hangs";
    const auto lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    const bool silence = lines[0].find("rank " + std::to_string(stuck) + " has been silent for") != std::string::npos;
    EXPECT_TRUE(silence || lines[0].find("the file is gone") != std::string::npos) << lines[0];
    EXPECT_EQ(outcome.code, silence ? 4 : 3);
    expect_none_left(program, "combining");
  }
}

}  // namespace
}  // namespace rowmill::testing
