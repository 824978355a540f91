// The whole engine in one process, on both host backends: known cases, and random data against a plain reference.
#include "engine/run.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "core/log.hpp"
#include "tests/support/files.hpp"
#include "tests/support/reference.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;

class EngineRun : public testing::TestWithParam<const char*> {
 protected:
  RunOptions options(const std::string& job, const std::string& input) {
    RunOptions options;
    options.job = job;
    options.inputs = {input};
    options.backend = GetParam();
    options.progress = "none";
    options.threads = 2;
    return options;
  }

  void SetUp() override { start_log("warn", 0, 1); }

  RunReport mill(const RunOptions& chosen) {
    World world = World::single();
    return run(chosen, world);
  }
  RunReport mill(const std::string& job, const std::string& input) { return mill(options(job, input)); }

  template <typename T>
  std::string npy(const Matrix<T>& matrix, bool big_endian = false, const std::string& type = {}) {
    const std::string path = folder_ / ("x" + std::to_string(files_++) + ".npy");
    test::write_npy(path, matrix, big_endian, type);
    return path;
  }

  static const std::vector<double>& values(const RunReport& report, const std::string& name) {
    const ResultDataset* dataset = report.result.find(name);
    if (dataset == nullptr) throw std::runtime_error("no " + name + " in the result");
    return dataset->values;
  }

  Folder folder_;
  int files_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Backends, EngineRun, testing::Values("host-async", "host"),
                         [](const auto& of) { return std::string(of.param) == "host" ? "Inline" : "Async"; });

TEST_P(EngineRun, Stats_OfManyFloat32Ones_AreExact) {
  Matrix<float> x(1 << 25, 1);
  std::fill(x.values.begin(), x.values.end(), 1.0F);
  const RunReport report = mill("stats", npy(x));
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  EXPECT_EQ(values(report, "sum")[0], 33554432.0);
  EXPECT_EQ(values(report, "mean")[0], 1.0);
  EXPECT_EQ(values(report, "variance")[0], 0.0);
}

TEST_P(EngineRun, StatsAndCov_OfColumnsWithLargeMeans_KeepSmallVariances) {
  Matrix<double> x(200'000, 2);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    x.at(i, 0) = 1e5 + 9e-6 * normal(random);
    x.at(i, 1) = 2e5 + 2e-6 * normal(random);
  }
  const auto answers = test::column_answers(x, 1);
  const std::string path = npy(x);
  const RunReport stats = mill("stats", path), cov = mill("cov", path);
  ASSERT_EQ(stats.exit_code, ExitCode::ok);
  ASSERT_EQ(cov.exit_code, ExitCode::ok);
  for (const std::size_t j : {0U, 1U}) {
    const auto truth = static_cast<double>(answers[j].variance);
    EXPECT_NEAR(values(stats, "variance")[j] / truth, 1, 1e-6);
    EXPECT_NEAR(values(cov, "covariance")[3 * j] / truth, 1, 1e-6);
  }
}

TEST_P(EngineRun, Cov_OfTwoFloat32RowsWithALargeMean_IsExact) {
  Matrix<float> x(2, 2);
  x.values = {10001, 10000, 10000, 10001};
  const RunReport report = mill("cov", npy(x));
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  EXPECT_EQ(values(report, "covariance"), (std::vector<double>{0.5, -0.5, -0.5, 0.5}));
  EXPECT_EQ(values(report, "mean"), (std::vector<double>{10000.5, 10000.5}));
}

TEST_P(EngineRun, Stats_OfLargeFloat16Values_AreExact) {
  Matrix<std::uint16_t> x(30'001, 1);
  const std::uint16_t plus = 0x77d0, minus = 0xf7d0;  // ±32000
  for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, 0) = i % 3 == 0 ? minus : plus;
  const RunReport report = mill("stats", npy(x, false, "f2"));
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  EXPECT_EQ(values(report, "sum")[0], 32000.0 * (20'000 - 10'001));
  EXPECT_EQ(values(report, "max")[0], 32000.0);
}

TEST_P(EngineRun, Results_OfBothByteOrders_AreTheSameBits) {
  Matrix<float> x(5000, 37);
  std::mt19937 random(3);
  std::normal_distribution<float> normal(5, 2);
  for (float& v : x.values) v = normal(random);
  const std::string little = npy(x), big = npy(x, true);
  for (const char* job : {"stats", "gram", "cov"}) {
    const RunReport a = mill(job, little), b = mill(job, big);
    ASSERT_EQ(a.exit_code, ExitCode::ok);
    ASSERT_EQ(a.result.datasets().size(), b.result.datasets().size());
    for (const auto& dataset : a.result.datasets()) {
      EXPECT_TRUE(test::same_bits(dataset.values, values(b, dataset.name))) << job << " " << dataset.name;
    }
  }
}

TEST_P(EngineRun, OneRow_WithDdofOne_IsRefusedSayingWhy) {
  Matrix<double> x(1, 3);
  const std::string path = npy(x);
  const RunReport refused = mill("stats", path);
  EXPECT_EQ(refused.exit_code, ExitCode::input);
  EXPECT_NE(refused.error.find("--ddof"), std::string::npos) << refused.error;
  EXPECT_EQ(mill("cov", path).exit_code, ExitCode::input);
  EXPECT_EQ(mill("gram", path).exit_code, ExitCode::ok);
}

TEST_P(EngineRun, NoRows_AreRefused) {
  Matrix<double> x(0, 3);
  EXPECT_EQ(mill("stats", npy(x)).exit_code, ExitCode::input);
}

TEST_P(EngineRun, Stats_OfIntegersBeyondFloat64_AreTheNearestDoublesAndSaySoOnce) {
  Matrix<std::uint64_t> x(3, 1);
  x.values = {std::numeric_limits<std::uint64_t>::max(), (1ULL << 53) + 1, 0};
  const RunReport report = mill("stats", npy(x));
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  EXPECT_EQ(values(report, "max")[0], 18446744073709551616.0);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("2^53"), std::string::npos);

  Matrix<std::int64_t> exact(2, 1);
  exact.values = {1LL << 53, -(1LL << 60)};
  EXPECT_TRUE(mill("stats", npy(exact)).warnings.empty());
}

TEST_P(EngineRun, Cov_OfIntegersBeyondFloat64_StaysWithinItsBound) {
  Matrix<std::int64_t> x(500, 2);
  std::mt19937_64 random(3);
  for (auto& value : x.values) value = (1LL << 53) + static_cast<std::int64_t>(random() % 9);
  const RunReport report = mill("cov", npy(x));
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  Matrix<std::int64_t> small = x;
  for (auto& value : small.values) value -= 1LL << 53;
  const auto products = test::cross_products(small, true);
  double bound = 0;
  for (const auto& [name, value] : report.result.attributes()) {
    if (name == "precision_bound") bound = std::get<double>(value);
  }
  double worst = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const auto scale = static_cast<double>(std::sqrt(products[3 * i] * products[3 * j]) / 499);
      const auto right = static_cast<double>(products[2 * i + j] / 499);
      worst = std::max(worst, std::abs(values(report, "covariance")[2 * i + j] - right) / scale);
    }
  }
  EXPECT_GT(worst, 1e-3) << "the integers were not rounded";
  EXPECT_LE(worst, bound);
  EXPECT_LT(bound, 2) << "a bound that says nothing";
}

TEST_P(EngineRun, Stats_OfAColumnWhoseValuesBeginInTheLastBlock_AreRight) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Matrix<double> x(10'000, 2);
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(1e7, 1e-2);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    x.at(i, 0) = normal(random);
    x.at(i, 1) = i < 9950 ? nan : normal(random);
  }
  RunOptions chosen = options("stats", npy(x));
  chosen.block_rows = 100;
  const RunReport report = mill(chosen);
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  const auto answers = test::column_answers(x, 1);
  EXPECT_EQ(values(report, "count")[1], 50);
  EXPECT_EQ(values(report, "missing")[1], 9950);
  for (const std::size_t j : {0U, 1U}) {
    EXPECT_NEAR(values(report, "mean")[j], static_cast<double>(answers[j].mean), 1e-8);
    EXPECT_NEAR(values(report, "variance")[j] / static_cast<double>(answers[j].variance), 1, 1e-6);
  }
}

TEST_P(EngineRun, StatsAndCov_OfAColumnThatJumpsAfterTheFirstBlock_KeepItsVariance) {
  Matrix<double> x(20'000, 2);
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    x.at(i, 0) = normal(random) * 1e-3 + (i < 64 ? 0 : 1e6);
    x.at(i, 1) = normal(random);
  }
  for (const char* job : {"stats", "cov"}) {
    RunOptions chosen = options(job, npy(x));
    chosen.block_rows = 64;
    const RunReport report = mill(chosen);
    ASSERT_EQ(report.exit_code, ExitCode::ok);
    const auto answers = test::column_answers(x, 1);
    const bool stats = std::string(job) == "stats";
    EXPECT_NEAR(values(report, stats ? "variance" : "covariance")[0] / static_cast<double>(answers[0].variance), 1,
                1e-6)
        << job;
  }
}

TEST_P(EngineRun, Stats_OfValuesWhoseSquaresLeaveFloat64_StayRight) {
  for (const double unit : {1e200, 1e-200}) {
    Matrix<double> x(1001, 1);
    for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, 0) = unit * static_cast<double>(i % 7);
    const auto answers = test::column_answers(x, 0);
    RunOptions chosen = options("stats", npy(x));
    chosen.ddof = 0;
    const RunReport report = mill(chosen);
    ASSERT_EQ(report.exit_code, ExitCode::ok);
    EXPECT_NEAR(values(report, "std")[0] / static_cast<double>(std::sqrt(answers[0].variance)), 1, 1e-12) << unit;
    EXPECT_NEAR(values(report, "mean")[0] / static_cast<double>(answers[0].mean), 1, 1e-12) << unit;
  }
}

TEST_P(EngineRun, Cov_OfColumnsWhoseVariancesLeaveFloat64_KeepsTheirDeviations) {
  Matrix<double> x(1001, 2);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    x.at(i, 0) = 1e200 * static_cast<double>(i % 7);
    x.at(i, 1) = 1e-200 * static_cast<double>(i % 5);
  }
  const std::string path = npy(x);
  const RunReport cov = mill("cov", path), stats = mill("stats", path);
  ASSERT_EQ(cov.exit_code, ExitCode::ok);
  for (const std::size_t j : {0U, 1U}) EXPECT_NEAR(values(cov, "std")[j] / values(stats, "std")[j], 1, 1e-12) << j;
  EXPECT_NEAR(values(cov, "covariance")[1], values(cov, "covariance")[2], 0);
  EXPECT_TRUE(std::isfinite(values(cov, "covariance")[1]));
}

TEST_P(EngineRun, Stats_OfSubnormalValues_AreRight) {
  Matrix<double> x(999, 1);
  for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, 0) = 1e-310 * static_cast<double>(i % 3 - 1);
  RunOptions chosen = options("stats", npy(x));
  chosen.ddof = 0;
  const RunReport report = mill(chosen);
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  EXPECT_NEAR(values(report, "mean")[0], 0, 1e-323);
  EXPECT_NEAR(values(report, "std")[0] / (1e-310 * std::sqrt(2.0 / 3)), 1, 1e-12);
}

TEST_P(EngineRun, Gram_OfFloat32ThatOverflowsOrUnderflows_IsDoneInFp64) {
  Matrix<float> x(1000, 3);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    x.at(i, 0) = 1e25F * static_cast<float>(i % 3);
    x.at(i, 1) = 1e-30F * static_cast<float>(i % 5);
    x.at(i, 2) = static_cast<float>(i % 2);
  }
  const RunReport report = mill("gram", npy(x));
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  const auto truth = test::cross_products(x, false);
  for (std::size_t k = 0; k < 9; ++k) {
    EXPECT_NEAR(values(report, "gram")[k] / static_cast<double>(truth[k]), 1, 1e-6) << k;
  }
}

TEST_P(EngineRun, Cov_WithAMissingValue_NamesTheFirstOne) {
  Matrix<float> x(5000, 7);
  x.at(4321, 2) = x.at(2222, 5) = x.at(2222, 6) = std::numeric_limits<float>::quiet_NaN();
  RunOptions chosen = options("cov", npy(x));
  chosen.block_rows = 50;
  const RunReport refused = mill(chosen);
  EXPECT_EQ(refused.exit_code, ExitCode::input);
  EXPECT_NE(refused.error.find("row 2222, column 5"), std::string::npos) << refused.error;
}

TEST_P(EngineRun, AMissingValue_AmongChosenColumns_IsNamedByItsColumnInTheInput) {
  Matrix<float> x(50, 7);
  x.at(12, 5) = std::numeric_limits<float>::quiet_NaN();
  RunOptions chosen = options("cov", npy(x));
  chosen.columns = {{6, 6}, {5, 5}, {0, 0}};
  const RunReport refused = mill(chosen);
  EXPECT_EQ(refused.exit_code, ExitCode::input);
  EXPECT_NE(refused.error.find("row 12, column 5"), std::string::npos) << refused.error;
}

TEST_P(EngineRun, Cov_WithPropagate_SpoilsOnlyItsColumn) {
  Matrix<float> x(500, 3);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& v : x.values) v = normal(random);
  x.at(123, 1) = std::numeric_limits<float>::quiet_NaN();
  RunOptions chosen = options("cov", npy(x));
  chosen.missing = "propagate";
  const RunReport report = mill(chosen);
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  const auto& covariance = values(report, "covariance");
  for (std::size_t k = 0; k < 9; ++k) EXPECT_EQ(std::isnan(covariance[k]), k / 3 == 1 || k % 3 == 1) << k;
  EXPECT_TRUE(std::isnan(values(report, "mean")[1]));
}

TEST_P(EngineRun, RowsAndColumns_ThatAreChosen_AreTheOnesMilled) {
  Matrix<std::int32_t> x(1000, 10);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t j = 0; j < x.columns; ++j) x.at(i, j) = static_cast<std::int32_t>(i * 10 + j);
  }
  RunOptions chosen = options("stats", npy(x));
  chosen.first_row = 17;
  chosen.end_row = 801;
  chosen.columns = {{9, 9}, {0, 0}, {4, 4}};
  chosen.block_rows = 100;
  const RunReport report = mill(chosen);
  ASSERT_EQ(report.exit_code, ExitCode::ok);
  EXPECT_EQ(values(report, "min"), (std::vector<double>{179, 170, 174}));
  EXPECT_EQ(values(report, "max"), (std::vector<double>{8009, 8000, 8004}));
  EXPECT_EQ(values(report, "count"), (std::vector<double>{784, 784, 784}));
}

template <typename T>
T random_value(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::normal_distribution<double>(3, 2)(random));
  } else {
    return static_cast<T>(random() % 100);
  }
}

template <typename T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  Matrix<T> x(rows, columns);
  for (T& v : x.values) v = random_value<T>(random);
  return x;
}

TEST_P(EngineRun, AllJobs_OfRandomMatrices_AgreeWithLongDouble) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto compare = [&](const auto& x) {
    const std::string path = npy(x);
    const auto answers = test::column_answers(x, 1);
    const auto raw = test::cross_products(x, false), centred = test::cross_products(x, true);
    RunOptions chosen = options("stats", path);
    chosen.block_rows = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(x.rows + 10));
    const RunReport stats = mill(chosen);
    chosen.job = "gram";
    const RunReport gram = mill(chosen);
    chosen.job = "cov";
    const RunReport cov = mill(chosen);
    ASSERT_EQ(cov.exit_code, ExitCode::ok);
    const auto d = static_cast<std::size_t>(x.columns);
    for (std::size_t i = 0; i < d; ++i) {
      EXPECT_NEAR(values(stats, "mean")[i], static_cast<double>(answers[i].mean),
                  1e-13 * static_cast<double>(answers[i].size));
      EXPECT_NEAR(values(stats, "variance")[i], static_cast<double>(answers[i].variance),
                  1e-11 * static_cast<double>(answers[i].variance));
      EXPECT_EQ(values(stats, "min")[i], static_cast<double>(answers[i].min));
      EXPECT_EQ(values(stats, "max")[i], static_cast<double>(answers[i].max));
      for (std::size_t j = 0; j < d; ++j) {
        const double size = std::sqrt(static_cast<double>(raw[i * d + i] * raw[j * d + j]));
        EXPECT_NEAR(values(gram, "gram")[i * d + j], static_cast<double>(raw[i * d + j]), 2.4e-5 * size);
        const double spread = std::sqrt(static_cast<double>(centred[i * d + i] * centred[j * d + j]));
        EXPECT_NEAR(values(cov, "covariance")[i * d + j],
                    static_cast<double>(centred[i * d + j] / static_cast<long double>(x.rows - 1)),
                    1e-4 * spread / static_cast<double>(x.rows - 1));
      }
    }
  };
  for (int round = 0; round < 4; ++round) {
    const auto rows = static_cast<std::int64_t>(2 + random() % 3000),
               columns = static_cast<std::int64_t>(1 + random() % 40);
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    compare(random_matrix<float>(rows, columns, random));
    compare(random_matrix<double>(rows, columns, random));
    compare(random_matrix<std::int8_t>(rows, columns, random));
    compare(random_matrix<std::uint16_t>(rows, columns, random));
    compare(random_matrix<std::int64_t>(rows, columns, random));
  }
}

TEST_P(EngineRun, Results_OfAnyThreadsPrefetchAndMemory_AreTheSameBits) {
  std::mt19937_64 random(99);
  const Matrix<float> x = random_matrix<float>(20'011, 33, random);
  const std::string path = npy(x);
  for (const char* job : {"stats", "gram", "cov"}) {
    RunOptions chosen = options(job, path);
    chosen.block_rows = 500;
    chosen.threads = 1;
    chosen.prefetch = 1;
    chosen.io_threads = 1;
    const RunReport first = mill(chosen);
    ASSERT_EQ(first.exit_code, ExitCode::ok);
    for (const int threads : {2, 5}) {
      chosen.threads = threads;
      chosen.prefetch = threads * 3;
      chosen.io_threads = threads;
      chosen.memory = std::int64_t{threads} << 29;
      const RunReport other = mill(chosen);
      for (const auto& dataset : first.result.datasets()) {
        EXPECT_TRUE(test::same_bits(dataset.values, values(other, dataset.name))) << job << " " << dataset.name;
      }
    }
  }
}

}  // namespace
}  // namespace rowmill
