// stats, gram and cov of random shapes, types, storage and ranks, against a plain long-double reference.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"
#include "tests/support/reference.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;
using test::rowmill;

template <typename T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  Matrix<T> x(rows, columns);
  for (T& v : x.values) {
    if constexpr (std::is_floating_point_v<T>) {
      v = static_cast<T>(std::normal_distribution<double>(-2, 5)(random));
    } else {
      v = static_cast<T>(random());
      if constexpr (sizeof(T) == 8) v = static_cast<T>(v / 4096);
    }
  }
  return x;
}

template <typename T>
void check(std::mt19937_64& random) {
  Folder folder;
  const auto rows = static_cast<std::int64_t>(2 + random() % 2500),
             columns = static_cast<std::int64_t>(1 + random() % 30);
  const Matrix<T> x = random_matrix<T>(rows, columns, random);
  test::H5Storage storage;
  storage.big_endian = random() % 2 == 0;
  if (random() % 3 > 0) {
    storage.chunk_rows = static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(rows));
    storage.chunk_columns = static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(columns));
    storage.gzip = random() % 2 == 0 ? 1 : 0;
  }
  const int ranks = std::array{0, 1, 2, 3, 5}[random() % 5], ddof = static_cast<int>(random() % 2);
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + " of " + test::npy_type<T>() +
               ", storage chunks " + std::to_string(storage.chunk_rows) + " x " +
               std::to_string(storage.chunk_columns) + ", gzip " + std::to_string(storage.gzip) + ", big-endian " +
               std::to_string(storage.big_endian) + ", " + std::to_string(ranks) + " ranks");
  test::write_h5(folder / "x.h5", x, storage);
  for (const char* job : {"stats", "gram", "cov"}) {
    std::vector<std::string> words = {job, folder / "x.h5:/X", "-o", folder / (std::string(job) + ".h5")};
    if (std::string(job) != "gram") words.insert(words.end(), {"--ddof", std::to_string(ddof)});
    const auto outcome = rowmill(words, ranks);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const auto answers = test::column_answers(x, ddof);
  const auto raw = test::cross_products(x, false), centred = test::cross_products(x, true);
  const auto mean = test::read_result(folder / "stats.h5", "mean"),
             variance = test::read_result(folder / "stats.h5", "variance");
  const auto sum = test::read_result(folder / "stats.h5", "sum"), min = test::read_result(folder / "stats.h5", "min");
  const auto gram = test::read_result(folder / "gram.h5", "gram"),
             covariance = test::read_result(folder / "cov.h5", "covariance");
  const auto d = static_cast<std::size_t>(columns);
  ASSERT_EQ(gram.size(), d * d);
  ASSERT_EQ(covariance.size(), d * d);
  const bool fp32 = sizeof(T) <= 4;
  for (std::size_t i = 0; i < d; ++i) {
    const auto size = static_cast<double>(answers[i].size);
    EXPECT_NEAR(mean[i], static_cast<double>(answers[i].mean), 1e-13 * size / static_cast<double>(rows));
    EXPECT_NEAR(sum[i], static_cast<double>(answers[i].sum), 1e-13 * size);
    EXPECT_NEAR(variance[i], static_cast<double>(answers[i].variance),
                1e-10 * static_cast<double>(answers[i].variance));
    EXPECT_EQ(min[i], static_cast<double>(answers[i].min));
    for (std::size_t j = 0; j < d; ++j) {
      const auto at = i * d + j;
      const double size_raw =
          std::sqrt(static_cast<double>(raw[i * d + i])) * std::sqrt(static_cast<double>(raw[j * d + j]));
      const double spread =
          std::sqrt(static_cast<double>(centred[i * d + i])) * std::sqrt(static_cast<double>(centred[j * d + j]));
      EXPECT_NEAR(gram[at], static_cast<double>(raw[at]), (fp32 ? 2.31e-5 : 1e-12) * size_raw);
      EXPECT_NEAR(covariance[at], static_cast<double>(centred[at]) / static_cast<double>(rows - ddof),
                  (fp32 ? 2.31e-4 : 1e-11) * spread / static_cast<double>(rows - ddof));
    }
  }
}

TEST(Property, Results_OfRandomFiles_AgreeWithLongDouble) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < (test::sanitized ? 1 : 2); ++round) {
    check<float>(random);
    check<double>(random);
    check<std::int8_t>(random);
    check<std::uint8_t>(random);
    check<std::int16_t>(random);
    check<std::uint16_t>(random);
    check<std::int32_t>(random);
    check<std::uint32_t>(random);
    check<std::int64_t>(random);
    check<std::uint64_t>(random);
  }
}

}  // namespace
}  // namespace rowmill
