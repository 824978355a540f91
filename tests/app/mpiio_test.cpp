// Reading by MPI-IO, from the command line: the bits of direct reading, and an end for all when one rank fails.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <random>
#include <string_view>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;
using test::Outcome;
using test::rowmill;

constexpr double kDeadline = 120;

Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns) {
  Matrix<float> x(rows, columns);
  std::mt19937_64 random(std::random_device{}());
  std::normal_distribution<float> normal(10, 3);
  for (float& v : x.values) v = normal(random);
  return x;
}

/// Mills directly on one rank, then in each way, and compares.
void expect_direct_bits(const Folder& folder, const std::vector<std::string>& inputs,
                        const std::vector<std::pair<int, std::string>>& ways) {
  for (const auto& [job, name] : {std::pair{"stats", "variance"}, {"cov", "covariance"}}) {
    if (test::sanitized && job == std::string_view("stats")) continue;  // cov has all of it, and is not faster
    std::vector<std::string> words = {job, "--block-rows", "200", "--overwrite"};
    words.insert(words.end(), inputs.begin(), inputs.end());
    std::vector<std::string> direct = words;
    direct.insert(direct.end(), {"-o", folder / "direct.out"});
    const Outcome first = rowmill(direct);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const auto want = test::read_result(folder / "direct.out", name);
    ASSERT_FALSE(want.empty());
    for (const auto& [ranks, io] : ways) {
      std::vector<std::string> other = words;
      other.insert(other.end(), {"--io", io, "-o", folder / "other.out"});
      const Outcome outcome = rowmill(other, ranks, kDeadline);
      ASSERT_EQ(outcome.exit_code, 0) << io << " on " << ranks << ": " << outcome.err;
      EXPECT_TRUE(outcome.error_lines().empty()) << outcome.err;
      EXPECT_TRUE(test::same_bits(want, test::read_result(folder / "other.out", name)))
          << job << " by " << io << " on " << ranks << " ranks";
    }
  }
}

TEST(Mpiio, GivesTheBitsOfDirectReading_OnOneToEightRanks) {
  const Folder folder;
  test::write_h5(folder / "gzip.h5", random_matrix(2901, 9), {.chunk_rows = 128, .chunk_columns = 4, .gzip = 1});
  expect_direct_bits(folder, {folder / "gzip.h5"},
                     test::sanitized ? std::vector<std::pair<int, std::string>>{{2, "mpiio"}, {3, "mpiio-collective"}}
                                     : std::vector<std::pair<int, std::string>>{{0, "mpiio"},
                                                                                {0, "mpiio-collective"},
                                                                                {3, "mpiio"},
                                                                                {3, "mpiio-collective"},
                                                                                {8, "mpiio"},
                                                                                {8, "mpiio-collective"}});
}

TEST(Mpiio, ReadsContiguousAndTallStorageChunks) {
  const Folder folder;
  const Matrix<float> x = random_matrix(2901, 9);
  test::write_h5(folder / "contiguous.h5", x, {.big_endian = true});
  test::write_h5(folder / "tall.h5", x, {.chunk_rows = 1100, .chunk_columns = 2, .gzip = 1});
  for (const char* file : {"contiguous.h5", "tall.h5"})
    expect_direct_bits(folder, {folder / file}, {{3, "mpiio"}, {3, "mpiio-collective"}});
}

TEST(Mpiio, MoreRanksThanBlocks_GiveTheSame) {
  const Folder folder;
  test::write_h5(folder / "x.h5", random_matrix(300, 3));  // two blocks
  expect_direct_bits(folder, {folder / "x.h5"}, {{5, "mpiio"}, {5, "mpiio-collective"}});
}

TEST(Mpiio, JoinedFiles_AreReadByEachRankOnItsOwn) {
  const Folder folder;
  test::write_h5(folder / "p1.h5", random_matrix(701, 5));
  test::write_h5(folder / "p2.h5", random_matrix(1200, 5), {.chunk_rows = 64, .chunk_columns = 3, .gzip = 1});
  const std::string both = folder / "p*.h5:/X";
  expect_direct_bits(folder, {both}, {{0, "mpiio"}, {3, "mpiio"}});
  const Outcome refused = rowmill({"stats", both, "--io", "mpiio-collective"}, 3);
  EXPECT_EQ(refused.exit_code, 3);
  ASSERT_EQ(refused.error_lines().size(), 1U) << refused.err;
  EXPECT_NE(refused.err.find("use --io mpiio"), std::string::npos) << refused.err;
}

TEST(Mpiio, NumpyFiles_AreRefusedByName) {
  const Folder folder;
  test::write_npy(folder / "x.npy", random_matrix(30, 2));
  const Outcome refused = rowmill({"stats", folder / "x.npy", "--io", "mpiio"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find("x.npy: cannot be read by MPI-IO"), std::string::npos) << refused.err;
}

TEST(Mpiio, Info_HasNoSuchOption) {
  const Folder folder;
  test::write_h5(folder / "x.h5", random_matrix(30, 3));
  EXPECT_EQ(rowmill({"info", folder / "x.h5", "--io", "mpiio"}).exit_code, 2);
}

TEST(Mpiio, OfMissingValues_TheSmallestRowIsNamed) {
  const Folder folder;
  Matrix<float> x = random_matrix(2000, 4);
  // the last rank sees its own at once, another only after many blocks
  x.at(999, 2) = x.at(1502, 1) = std::numeric_limits<float>::quiet_NaN();
  test::write_h5(folder / "x.h5", x);
  for (const char* io : {"mpiio", "mpiio-collective"}) {
    const Outcome outcome =
        rowmill({"cov", folder / "x.h5", "--io", io, "--block-rows", "20", "--threads", "1"}, 4, kDeadline);
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    ASSERT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("row 999, column 2"), std::string::npos) << outcome.err;
  }
}

TEST(Mpiio, AStorageChunkThatOneRankCannotRead_EndsAll) {
  const Folder folder;
  test::write_h5(folder / "x.h5", random_matrix(4000, 16), {.chunk_rows = 100, .chunk_columns = 16, .gzip = 4});
  {
    std::fstream file(folder / "x.h5", std::ios::in | std::ios::out | std::ios::binary | std::ios::ate);
    const auto bytes = static_cast<std::int64_t>(file.tellg());
    file.seekp(bytes * 7 / 10);
    file << std::string(6000, '\x5a');
  }
  for (const char* io : {"mpiio", "mpiio-collective"}) {
    const Outcome outcome = rowmill(
        {"stats", folder / "x.h5", "--io", io, "--block-rows", "100", "--timeout", "20s", "-o", folder / "out.h5"}, 3,
        kDeadline);
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    ASSERT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("HDF5 cannot read them"), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "out.h5"));
  }
}

TEST(Mpiio, SparseMatrices_AreReadByEachRankOnItsOwn) {
  const Folder folder;
  std::mt19937_64 random(std::random_device{}());
  Matrix<double> x(900, 12);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t column = static_cast<std::int64_t>(random() % 3); column < x.columns; column += 3) {
      x.at(row, column) = static_cast<double>(random() % 100);
    }
  }
  test::write_sparse(folder / "s.h5ad", x);

  expect_direct_bits(folder, {folder / "s.h5ad:/X"}, {{0, "mpiio"}, {3, "mpiio"}});
  const Outcome refused = rowmill({"stats", folder / "s.h5ad:/X", "--io", "mpiio-collective"}, 2);
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("made of several data sets"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace rowmill
