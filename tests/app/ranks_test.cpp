// The same bits on any number of ranks and threads.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;
using test::Outcome;
using test::rowmill;

const std::vector<std::pair<const char*, std::vector<const char*>>>& jobs() {
  static const std::vector<std::pair<const char*, std::vector<const char*>>> all = {
      {"stats", {"count", "missing", "sum", "mean", "variance", "std", "min", "max"}},
      {"gram", {"gram"}},
      {"cov", {"covariance", "mean", "std"}}};
  return all;
}

Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Matrix<float> x(rows, columns);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(10, 3);
  for (float& v : x.values) v = normal(random);
  return x;
}

/// Runs every job alone with one thread, then in each of the ways, and compares all data sets bit for bit.
void expect_same_bits(const Folder& folder, const std::string& input,
                      const std::vector<std::pair<int, std::vector<std::string>>>& ways) {
  for (const auto& [job, names] : jobs()) {
    const std::vector<std::string> words = {job, input, "--overwrite", "--block-rows", "300", "-o"};
    std::vector<std::string> alone = words;
    alone.insert(alone.end(), {folder / "alone.h5", "--threads", "1"});
    const Outcome first = rowmill(alone);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    for (const auto& [ranks, more] : ways) {
      // bits on many ranks are for builds without a sanitizer to show: these look for wrong accesses, and are slow
      if (test::sanitized && ranks > 3) continue;
      std::vector<std::string> other = words;
      other.push_back(folder / "other.h5");
      other.insert(other.end(), more.begin(), more.end());
      const Outcome outcome = rowmill(other, ranks, 120);
      ASSERT_EQ(outcome.exit_code, 0) << ranks << " ranks: " << outcome.err;
      for (const char* name : names) {
        const auto a = test::read_result(folder / "alone.h5", name), b = test::read_result(folder / "other.h5", name);
        ASSERT_FALSE(a.empty()) << name;
        EXPECT_TRUE(test::same_bits(a, b)) << job << " " << name << " on " << ranks << " ranks";
      }
    }
  }
}

TEST(SameBits, OnOneToEightRanks) {
  Folder folder;
  test::write_h5(folder / "x.h5", random_matrix(7321, 19, 1));
  expect_same_bits(
      folder, folder / "x.h5:/X",
      {{1, {}}, {2, {"--threads", "1"}}, {3, {"--threads", "2"}}, {5, {"--threads", "1"}}, {8, {"--threads", "1"}}});
}

TEST(SameBits, WithAnyThreadsMemoryAndPrefetch) {
  Folder folder;
  test::write_h5(folder / "x.h5", random_matrix(20'000, 23, 2), {.chunk_rows = 128, .chunk_columns = 23});
  const std::string little = test::sanitized ? "300MiB" : "100MiB";
  expect_same_bits(folder, folder / "x.h5:/X",
                   {{0, {"--threads", "2"}},
                    {0, {"--threads", "3", "--memory", little, "--prefetch", "1"}},
                    {0, {"--threads", "2", "--memory", "4GiB", "--prefetch", "50", "--io-threads", "4"}}});
}

TEST(SameBits, FromContiguousChunkedCompressedAndNumpyFiles) {
  Folder folder;
  const Matrix<float> x = random_matrix(3001, 12, 3);
  test::write_h5(folder / "contiguous.h5", x);
  test::write_h5(folder / "chunked.h5", x, {.chunk_rows = 97, .chunk_columns = 5});
  test::write_h5(folder / "gzip.h5", x, {.chunk_rows = 100, .chunk_columns = 12, .gzip = 4});
  test::write_h5(folder / "tall.h5", x, {.chunk_rows = 1100, .chunk_columns = 2, .gzip = 1});
  test::write_h5(folder / "many.h5", x, {.chunk_rows = 2, .chunk_columns = 4, .gzip = 1});
  test::write_h5(folder / "big.h5", x, {.big_endian = true});
  test::write_npy(folder / "x.npy", x);
  for (const auto& [job, names] : jobs()) {
    for (const char* file :
         {"contiguous.h5:/X", "chunked.h5:/X", "gzip.h5:/X", "tall.h5:/X", "many.h5:/X", "big.h5:/X", "x.npy"}) {
      const Outcome outcome = rowmill({job, folder / file, "-o", folder / (std::string(file).substr(0, 3) + ".out"),
                                       "--overwrite", "--block-rows", "256"});
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      for (const char* name : names) {
        ASSERT_FALSE(test::read_result(folder / "con.out", name).empty()) << job << " " << name;
        EXPECT_TRUE(test::same_bits(test::read_result(folder / "con.out", name),
                                    test::read_result(folder / (std::string(file).substr(0, 3) + ".out"), name)))
            << job << " " << name << " " << file;
      }
    }
  }
}

TEST(SameBits, FromStorageChunksThatBlocksShare_OnOneToFiveRanks) {
  Folder folder;
  const Matrix<float> x = random_matrix(4001, 12, 4);
  test::write_h5(folder / "tall.h5", x, {.chunk_rows = 1100, .chunk_columns = 2, .gzip = 1});
  test::write_h5(folder / "many.h5", x, {.chunk_rows = 2, .chunk_columns = 4, .gzip = 1});
  for (const char* file : {"tall.h5:/X", "many.h5:/X"}) {
    expect_same_bits(folder, folder / file,
                     {{0, {"--threads", "3"}}, {0, {"--io-threads", "5"}}, {3, {"--threads", "2"}}, {5, {}}});
  }
}

/// A tenth of the values is stored; the mean of column 2 is far from its deviation, so that cov makes a second pass.
Matrix<float> sparse_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed, float far) {
  Matrix<float> x(rows, columns);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(3, 1);
  std::uniform_int_distribution<int> tenth(0, 9);
  for (float& v : x.values) v = tenth(random) == 0 ? normal(random) : 0;
  for (std::int64_t row = 0; row < rows && far > 0; ++row) x.at(row, 2) = normal(random) + far;
  return x;
}

TEST(SameBits, FromSparseRows_OnOneToEightRanks) {
  Folder folder;
  test::write_sparse(folder / "sparse.h5", sparse_matrix(7321, 400, 5, 0));
  test::write_sparse(folder / "far.h5", sparse_matrix(2321, 400, 6, 1000));
  const std::string little = test::sanitized ? "300MiB" : "100MiB";
  for (const char* file : {"sparse.h5:/X", "far.h5:/X"}) {
    expect_same_bits(folder, folder / file,
                     {{0, {"--threads", "3", "--memory", little, "--prefetch", "1"}},
                      {0, {"--threads", "2", "--memory", "4GiB", "--prefetch", "50", "--io-threads", "4"}},
                      {2, {"--threads", "1"}},
                      {3, {"--threads", "2"}},
                      {8, {"--threads", "1"}}});
    EXPECT_EQ(test::read_attribute(folder / "alone.h5", "precision"), "fp64") << "by entries";
    EXPECT_EQ(test::read_number_attribute(folder / "alone.h5", "passes"), file[0] == 'f' ? 2 : 1) << "of cov";
  }
}

/// Each rank turns the columns of its own rows.
TEST(SameBits, FromSparseColumns_OnOneToEightRanks_AreThoseOfRows) {
  Folder folder;
  const Matrix<float> x = sparse_matrix(3001, 60, 7, 0);
  test::write_sparse(folder / "rows.h5", x);
  test::write_sparse(folder / "columns.h5", x, true);
  expect_same_bits(folder, folder / "columns.h5:/X", {{0, {"--threads", "3"}}, {3, {}}, {8, {"--threads", "1"}}});
  for (const char* file : {"rows", "columns"}) {
    const std::string input = folder / (std::string(file) + ".h5:/X"), output = folder / (std::string(file) + ".out");
    const Outcome outcome = rowmill({"gram", input, "--block-rows", "300", "-o", output}, 3);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const auto gram = test::read_result(folder / "rows.out", "gram");
  ASSERT_EQ(gram.size(), 3600U);
  EXPECT_TRUE(test::same_bits(gram, test::read_result(folder / "columns.out", "gram")));
}

/// Files that are joined go by entries as one file does.
TEST(SameBits, FromSparseFilesJoined_AreThoseOfOneFile) {
  Folder folder;
  const Matrix<float> x = sparse_matrix(2000, 200, 8, 0);
  test::write_sparse(folder / "whole.h5", x);
  std::vector<std::string> words = {"gram", "--block-rows", "300", "-o", folder / "parts.out"};
  for (const std::int64_t first : {0, 700}) {
    Matrix<float> part(first == 0 ? 700 : 1300, 200);
    std::copy_n(x.values.begin() + first * 200, part.values.size(), part.values.begin());
    const std::string path = folder / ("part" + std::to_string(first) + ".h5");
    test::write_sparse(path, part);
    words.push_back(path + ":/X");
  }
  const Outcome whole = rowmill({"gram", folder / "whole.h5:/X", "--block-rows", "300", "-o", folder / "whole.out"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Outcome parts = rowmill(words, 2);
  ASSERT_EQ(parts.exit_code, 0) << parts.err;
  EXPECT_EQ(test::read_attribute(folder / "whole.out", "precision"), "fp64") << "by entries";
  EXPECT_EQ(test::read_attribute(folder / "parts.out", "precision"), "fp64");
  const auto gram = test::read_result(folder / "whole.out", "gram");
  ASSERT_EQ(gram.size(), 40000U);
  EXPECT_TRUE(test::same_bits(gram, test::read_result(folder / "parts.out", "gram")));
}

TEST(MoreRanksThanRows, GiveWhatOneRankGives) {
  Folder folder;
  Matrix<double> x(3, 4);
  for (std::size_t k = 0; k < 12; ++k) x.values[k] = static_cast<double>(k + 1);
  test::write_h5(folder / "x.h5", x);
  const Outcome outcome = rowmill({"stats", folder / "x.h5:/X", "-o", folder / "out.h5"}, 5);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(test::read_result(folder / "out.h5", "sum"), (std::vector<double>{15, 18, 21, 24}));
  EXPECT_EQ(test::read_result(folder / "out.h5", "std"), (std::vector<double>{4, 4, 4, 4}));
  for (const char* job : {"gram", "cov"}) {
    const std::string name = std::string(job) == "cov" ? "covariance" : job;
    for (const auto& [file, ranks] : {std::pair{"1.h5", 0}, {"5.h5", 5}}) {
      const Outcome again = rowmill({job, folder / "x.h5:/X", "-o", folder / file, "--overwrite"}, ranks);
      ASSERT_EQ(again.exit_code, 0) << again.err;
    }
    const std::vector<double> alone = test::read_result(folder / "1.h5", name);
    ASSERT_EQ(alone.size(), 16U);
    EXPECT_TRUE(test::same_bits(alone, test::read_result(folder / "5.h5", name))) << job;
  }
}

}  // namespace
}  // namespace rowmill
