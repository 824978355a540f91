// A device that stops working on one rank, while another fails or none does: all ranks end, with one line.
#include <gtest/gtest.h>

#include <string>

#include "tests/comm/fault_support.hpp"
#include "tests/comm/launch.hpp"
#include "tests/support/files.hpp"

namespace rowmill::testing {
namespace {

const std::string program = ROWMILL_BIN_DIR "/engine_faults_probe";

Launched probe(const std::string& where, int stuck, int failing, int ranks = 3) {
  return launch(ranks, {}, {program, where, std::to_string(stuck), std::to_string(failing), "2000"},
                std::chrono::seconds(30));
}

TEST(StuckDevice, Nowhere_EndsWell) {
  for (const char* where : {"milling", "combining", "summing"}) {
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

/// All ranks beat, and nobody fails: only the time that the device takes can tell.
TEST(StuckDevice, WhileNobodyFails_EndsAllNamingItsRank) {
  for (const char* where : {"milling", "summing"}) {
    for (const int stuck : {0, 2}) {
      const Launched outcome = probe(where, stuck, -1);
      EXPECT_TRUE(outcome.ended) << "hangs";
      EXPECT_EQ(outcome.code, 4);
      const auto lines = lines_of_ours(outcome.errors);
      ASSERT_EQ(lines.size(), 1u) << outcome.errors;
      EXPECT_NE(lines[0].find(" of rank " + std::to_string(stuck) + " has not ended its work for "), std::string::npos)
          << lines[0];
      expect_none_left(program, where);
    }
  }
}

TEST(StuckDevice, OfTheWholeEngine_EndsAllNamingItsRank) {
  test::Folder folder;
  const std::string file = folder / "x.npy";
  test::write_npy(file, test::Matrix<float>(20000, 5), false, {});
  EXPECT_EQ(probe(file, -1, -1).code, 0);
  for (const int ranks : {1, 3}) {
    const Launched outcome = probe(file, ranks - 1, -1, ranks);
    EXPECT_TRUE(outcome.ended) << "hangs";
    EXPECT_EQ(outcome.code, 4);
    const auto lines = lines_of_ours(outcome.errors);
    ASSERT_EQ(lines.size(), 1u) << outcome.errors;
    EXPECT_NE(lines[0].find(" of rank " + std::to_string(ranks - 1) + " has not ended its work for "),
              std::string::npos)
        << lines[0];
    expect_none_left(program, file);
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
