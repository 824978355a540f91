// Several inputs joined along rows, from the command line.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;
using test::Outcome;
using test::rowmill;

Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns) {
  Matrix<float> x(rows, columns);
  std::mt19937_64 random(std::random_device{}());
  std::normal_distribution<float> normal(10, 3);
  for (float& v : x.values) v = normal(random);
  return x;
}

Matrix<float> rows_of(const Matrix<float>& x, std::int64_t first, std::int64_t end) {
  Matrix<float> part(end - first, x.columns);
  for (std::int64_t i = first; i < end; ++i) {
    for (std::int64_t j = 0; j < x.columns; ++j) part.at(i - first, j) = x.at(i, j);
  }
  return part;
}

TEST(JoinedFiles, GiveTheBitsOfTheirOneFileTwin_OnOneToThreeRanks) {
  const Folder folder;
  const Matrix<float> x = random_matrix(4001, 7);
  test::write_h5(folder / "all.h5", x);
  test::write_h5(folder / "p1.h5", rows_of(x, 0, 700));
  test::write_h5(folder / "p2.h5", rows_of(x, 700, 1501), {.chunk_rows = 64, .chunk_columns = 3});
  test::write_h5(folder / "p3.h5", rows_of(x, 1501, 1502), {.big_endian = true});
  test::write_h5(folder / "p4.h5", rows_of(x, 1502, 3990), {.chunk_rows = 100, .chunk_columns = 7, .gzip = 4});
  test::write_npy(folder / "last.npy", rows_of(x, 3990, 4001));
  for (const auto& [job, name] : {std::pair{"stats", "variance"}, {"cov", "covariance"}}) {
    ASSERT_EQ(rowmill({job, folder / "all.h5", "--block-rows", "300", "--overwrite", "-o", folder / "one"}).exit_code,
              0);
    for (const int ranks : {0, 2, 3}) {
      const Outcome joined = rowmill({job, folder / "p*.h5:/X", folder / "last.npy", "--block-rows", "300",
                                      "--overwrite", "-o", folder / "joined"},
                                     ranks);
      ASSERT_EQ(joined.exit_code, 0) << joined.err;
      const auto want = test::read_result(folder / "one", name);
      ASSERT_FALSE(want.empty());
      EXPECT_TRUE(test::same_bits(want, test::read_result(folder / "joined", name))) << job << " on " << ranks;
    }
  }
  const auto inputs = nlohmann::json::parse(test::read_attribute(folder / "joined", "inputs"));
  ASSERT_EQ(inputs.size(), 5U);
  EXPECT_EQ(inputs[1].at("path"), folder / "p2.h5");
  EXPECT_EQ(inputs[1].at("shape"), (std::vector<int>{801, 7}));
  EXPECT_EQ(inputs[4].at("format"), "npy");

  const Outcome some = rowmill({"stats", folder / "p1.h5", folder / "p2.h5", "--rows", "699:702", "--json"});
  ASSERT_EQ(some.exit_code, 0) << some.err;
  const auto stats = nlohmann::json::parse(some.out);
  EXPECT_EQ(stats.at("result").at("max").at(0).get<double>(), std::max({x.at(699, 0), x.at(700, 0), x.at(701, 0)}));
  EXPECT_EQ(stats.at("input").at("files").at(1).at("first_row"), 700);
}

TEST(JoinedFiles, ThreeThousandOfThem_AreMilledWith256Descriptors) {
  const Folder folder;
  const Matrix<float> x = random_matrix(6000, 3);
  test::write_npy(folder / "all.npy", x);
  for (std::int64_t i = 0; i < 3000; ++i) {
    const std::string number = std::to_string(10'000 + i);
    // helpers plan HDF5 files, which takes its time: few of these are enough
    if (i % 20 == 0) {
      test::write_h5(folder / ("f" + number), rows_of(x, 2 * i, 2 * i + 2));
    } else {
      test::write_npy(folder / ("f" + number), rows_of(x, 2 * i, 2 * i + 2));
    }
  }
  ASSERT_EQ(rowmill({"cov", folder / "all.npy", "--block-rows", "250", "-o", folder / "one"}).exit_code, 0);
  test::Command command{{"sh", "-c", "ulimit -n 256 && exec \"$@\"", "sh", test::program(), "cov", folder / "f*",
                         "--block-rows", "250", "-o", folder / "joined"},
                        test::mpi_environment(),
                        300};
  const Outcome joined = test::run_program(command);
  ASSERT_EQ(joined.exit_code, 0) << joined.err;
  EXPECT_TRUE(test::same_bits(test::read_result(folder / "one", "covariance"),
                              test::read_result(folder / "joined", "covariance")));
}

TEST(JoinedFiles, ThatCannotBeJoined_AreNamedInOneLine) {
  const Folder folder;
  test::write_h5(folder / "a.h5", random_matrix(5, 3));
  test::write_h5(folder / "wide.h5", random_matrix(5, 4));
  Matrix<float> holed = random_matrix(5, 3);
  holed.at(2, 1) = std::numeric_limits<float>::quiet_NaN();
  test::write_h5(folder / "holed.h5", holed);
  const struct {
    std::vector<std::string> words;
    int exit_code;
    std::string says;
  } cases[] = {
      {{"stats", folder / "a.h5", folder / "wide.h5"}, 3, "wide.h5:/X: has 4 columns"},
      {{"stats", folder / "a.h5", folder / "gone.h5"}, 3, "gone.h5: cannot be opened"},
      {{"stats", folder / "b*.h5"}, 2, "b*.h5: matches no file"},
      {{"cov", folder / "a.h5", folder / "holed.h5"},
       3,
       "holed.h5:/X: the value at row 2 (row 7 of all files), column 1"},
      {{"stats", folder / "*.h5", "-o", folder / "holed.h5", "--overwrite"}, 2, "holed.h5 is the input itself"},
      {{"stats", folder / "a.h5", folder / "a.h5", "--rows", "5:11"}, 2, "10 rows"},
  };
  for (const auto& c : cases) {
    for (const int ranks : {0, 2}) {
      const Outcome outcome = rowmill(c.words, ranks);
      EXPECT_EQ(outcome.exit_code, c.exit_code) << outcome.err;
      ASSERT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
      EXPECT_NE(outcome.err.find(c.says), std::string::npos) << outcome.err;
    }
  }
}

TEST(JoinedFiles, InInfo_AreListed) {
  const Folder folder;
  for (const char* name : {"a.h5", "b.h5"}) test::write_h5(folder / name, random_matrix(5, 3));
  const Outcome text = rowmill({"info", folder / "?.h5"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("rows 5:10 are " + (folder / "b.h5") + ":/X"), std::string::npos) << text.out;
  const auto json = nlohmann::json::parse(rowmill({"info", folder / "?.h5", "--json"}).out);
  EXPECT_EQ(json.at("would_mill").at("files").size(), 2U);
  EXPECT_EQ(json.at("would_mill").at("rows"), 10);
}

}  // namespace
}  // namespace rowmill
