// What goes wrong on one rank ends all of them, soon, with one line and no result.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;
using test::Outcome;
using test::rowmill;

/// Of a process that ends meanwhile nothing can be read.
std::string text_of(const std::filesystem::path& path) {
  try {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  } catch (const std::ios_base::failure&) {
    return {};
  }
}

/// Ranks of this test's run, by the unique word in their command lines; sorted by rank.
std::vector<std::pair<int, pid_t>> ranks_of(const std::string& word) {
  std::vector<std::pair<int, pid_t>> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = text_of(entry.path() / "cmdline"), variables = text_of(entry.path() / "environ");
    if (words.find(word) == std::string::npos || words.rfind(test::program(), 0) != 0) continue;
    const std::size_t at = variables.find("OMPI_COMM_WORLD_RANK=");
    if (at != std::string::npos) found.emplace_back(std::atoi(variables.c_str() + at + 21), std::atoi(name.c_str()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool has_open(pid_t process, const std::string& path) {
  std::error_code gone;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd";
  for (std::filesystem::directory_iterator entry(folder, gone), end; !gone && entry != end; entry.increment(gone)) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry->path(), closed) == path) return true;
  }
  return false;
}

class Faults : public testing::Test {
 protected:
  /// A run of many seconds on four ranks: blocks of one row, whose triangles are added one by one.
  std::vector<std::string> long_run() {
    const Outcome made =
        rowmill({"generate", folder_ / "x.h5", "--shape", "60000x700", "--type", "float64", "--rank", "1"}, 0, 120);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return {"gram", folder_ / "x.h5:/X", "-o", folder_ / "out.h5", "--threads",
            "1",    "--block-rows",      "1",  "--timeout",        "5s"};
  }

  /// Sends the signal to one rank once all four have their input open, which is when they begin to mill.
  void disturb(int rank, int signal) {
    for (int tries = 0; tries < 2500; ++tries) {
      const auto ranks = ranks_of(folder_.path());
      const auto reads = [this](const auto& of) { return has_open(of.second, folder_ / "x.h5"); };
      if (ranks.size() == 4 && std::all_of(ranks.begin(), ranks.end(), reads)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        when_ = std::chrono::steady_clock::now();
        disturbed_ = kill(ranks[static_cast<std::size_t>(rank)].second, signal) == 0;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  Outcome run_disturbed(int rank, int signal) {
    const std::vector<std::string> words = long_run();
    std::thread meddler;
    const Outcome outcome =
        rowmill(words, 4, 120, [&](pid_t) { meddler = std::thread([=, this] { disturb(rank, signal); }); });
    meddler.join();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - when_).count();
    EXPECT_TRUE(disturbed_) << "the run ended before it was disturbed: " << outcome.seconds << " s";
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.h5"));
    EXPECT_TRUE(ranks_of(folder_.path()).empty()) << "ranks are left";
    return outcome;
  }

  Folder folder_;
  std::atomic<bool> disturbed_ = false;
  std::chrono::steady_clock::time_point when_;
  double seconds_ = 0;  ///< from the signal to the end of all ranks
};

TEST_F(Faults, ARankThatIsKilled_EndsAll) {
  const Outcome outcome = run_disturbed(2, SIGKILL);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.exit_code, -1) << "hangs";
  EXPECT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
  EXPECT_LT(seconds_, 20);
}

TEST_F(Faults, ARankThatIsStopped_IsNamedAfterTheTimeout) {
  const Outcome outcome = run_disturbed(2, SIGSTOP);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.err.find("rank 2"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_LT(seconds_, 25);
}

TEST_F(Faults, TheFirstRankStopped_IsNamedToo) {
  const Outcome outcome = run_disturbed(0, SIGSTOP);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.err.find("rank 0"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_LT(seconds_, 25);
}

TEST_F(Faults, AFileThatIsWrittenToMeanwhile_EndsAllRanksWithoutAResult) {
  std::vector<std::string> words = long_run();
  words.insert(words.end(), {"--rows", test::sanitized ? "0:800" : "0:6000"});
  std::thread meddler;
  const Outcome outcome = rowmill(words, 4, 120, [&](pid_t) {
    meddler = std::thread([this] {
      disturb(0, 0);  // waits until all mill
      std::fstream(folder_ / "x.h5", std::ios::in | std::ios::out | std::ios::binary).seekp(1 << 20).put('x');
    });
  });
  meddler.join();
  EXPECT_TRUE(disturbed_) << "the run ended before the file was written to";
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("was written to"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.h5"));
}

TEST_F(Faults, AStorageChunkThatIsDamaged_EndsAllRanksWithItsName) {
  Matrix<float> x(4000, 16);
  std::mt19937 random(1);
  for (float& v : x.values) v = static_cast<float>(random() % 1000);
  test::write_h5(folder_ / "x.h5", x, {.chunk_rows = 100, .chunk_columns = 16, .gzip = 6});
  // The third quarter of the file lies in blocks of rank 2.
  std::fstream file(folder_ / "x.h5", std::ios::in | std::ios::out | std::ios::binary);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(folder_ / "x.h5"));
  file.seekp(size * 5 / 8);
  file << std::string(6000, '\x55');
  file.close();
  const Outcome outcome = rowmill({"stats", folder_ / "x.h5:/X", "-o", folder_ / "out.h5", "--block-rows", "100"}, 4);
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("x.h5"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.h5"));
  EXPECT_LT(outcome.seconds, 20);
}

TEST_F(Faults, MissingValuesOnSeveralRanks_NameTheFirst) {
  Matrix<float> x(4000, 5);
  x.at(3900, 0) = x.at(2500, 1) = x.at(1234, 4) = x.at(1235, 0) = std::numeric_limits<float>::quiet_NaN();
  test::write_h5(folder_ / "x.h5", x);
  for (const int ranks : {0, 2, 4, 5}) {
    const Outcome outcome =
        rowmill({"cov", folder_ / "x.h5:/X", "-o", folder_ / "out.h5", "--block-rows", "10"}, ranks);
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("row 1234, column 4"), std::string::npos) << outcome.err;
  }
}

TEST_F(Faults, WrongUsageOnManyRanks_IsSaidOnce) {
  const Outcome outcome = rowmill({"cov", folder_ / "nosuch.h5:/X", "-o", folder_ / "out.h5"}, 4);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
  const Outcome words = rowmill({"cov", "x.h5", "--nosuch"}, 4);
  EXPECT_EQ(words.exit_code, 2);
  EXPECT_EQ(words.error_lines().size(), 1U) << words.err;
}

}  // namespace
}  // namespace rowmill
