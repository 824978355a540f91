#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/host/kernels.hpp"
#include "kernels/host/reference.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using test::BlockShape;
using test::RandomBlock;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Results with poison before the call.
struct Moments {
  explicit Moments(std::int64_t columns)
      : count(columns, -7), missing(columns, -7), sum(columns, -7.5), second(sum), min(sum), max(sum) {}
  ColumnMoments view() { return {count.data(), missing.data(), sum.data(), second.data(), min.data(), max.data()}; }
  std::vector<std::int64_t> count, missing;
  std::vector<double> sum, second, min, max;
};

Moments moments_of(const Block& block, ColumnMap map = {}) {
  Moments moments(column_count(block.x));
  host::column_moments(block, map, moments.view());
  return moments;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// Whole numbers with whole shifts and scales that are powers of two: every sum is exact.
TEST(ColumnMoments, OfWholeNumbers_AreExact_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(250); ++round) {
    const BlockShape shape = test::random_shape(random);
    const RandomBlock data(shape, random);
    std::vector<double> shift(shape.columns), scale(shape.columns);
    for (double& s : shift) s = static_cast<double>(random() % 100) - 50;
    for (double& s : scale) s = std::ldexp(1.0, static_cast<int>(random() % 5) - 2);
    const ColumnMap map{random() % 3 == 0 ? nullptr : shift.data(), random() % 2 == 0 ? nullptr : scale.data()};
    const host::ReferenceMoments expected = host::reference_moments(data.block(), map);
    test::for_each_target([&](const std::string&) {
      const Moments moments = moments_of(data.block(), map);
      ASSERT_EQ(moments.count, expected.count) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(moments.missing, expected.missing) << test::describe(shape) << " seed " << seed;
      for (std::int64_t j = 0; j < shape.columns; ++j) {
        ASSERT_EQ(moments.sum[j], expected.sum[j])
            << "column " << j << " " << test::describe(shape) << " seed " << seed;
        ASSERT_EQ(moments.second[j], expected.second[j]) << test::describe(shape) << " seed " << seed;
        ASSERT_EQ(moments.min[j], expected.min[j]) << test::describe(shape) << " seed " << seed;
        ASSERT_EQ(moments.max[j], expected.max[j]) << test::describe(shape) << " seed " << seed;
      }
    });
  }
}

TEST(ColumnMoments, OfRealNumbers_StayWithinRoundingOfTheReference) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::int64_t columns : {1, 3, 20, 130}) {
    BlockShape shape = test::plain_shape(5001, columns, DType::f64);
    shape.nan_share = columns == 3 ? 0.01 : 0;
    shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>(3, 1)(r); };
    const RandomBlock data(shape, random);
    const host::ReferenceMoments expected = host::reference_moments(data.block(), {});
    const Moments moments = moments_of(data.block());
    for (std::int64_t j = 0; j < columns; ++j) {
      const double rounding = 200 * 0x1p-53;  // chains of 64, 64 and 3 additions
      EXPECT_LE(std::abs(moments.sum[j] - expected.sum[j]), rounding * expected.absolute[j]) << "seed " << seed;
      EXPECT_LE(std::abs(moments.second[j] - expected.second[j]), rounding * expected.second[j]) << "seed " << seed;
    }
  }
}

TEST(ColumnMoments, OfAVeryLongColumn_LoseNothing) {
  const std::int64_t rows = std::int64_t{1} << 22;
  const std::vector<float> ones(static_cast<std::size_t>(rows), 0.1f);
  Block block;
  block.range = {0, rows};
  block.x = DenseRows{reinterpret_cast<const std::byte*>(ones.data()), {DType::f32, false}, rows, 1, 1};
  const Moments moments = moments_of(block);
  const double exact = static_cast<double>(0.1f) * static_cast<double>(rows);
  EXPECT_EQ(moments.count[0], rows);
  EXPECT_NEAR(moments.sum[0], exact, exact * 1e-14);
}

TEST(ColumnMoments, InfinitiesFollowIeee_AndNaNAreSkipped) {
  BlockShape shape = test::plain_shape(70, 40, DType::f32);
  std::mt19937_64 random(1);
  RandomBlock data(shape, random);
  data.set(3, 0, infinity);
  data.set(66, 1, -infinity);
  data.set(3, 2, infinity);
  data.set(66, 2, -infinity);
  for (std::int64_t i = 0; i < shape.rows; ++i) data.set(i, 39, std::nan(""));
  test::for_each_target([&](const std::string&) {
    const Moments moments = moments_of(data.block());
    EXPECT_EQ(moments.sum[0], infinity);
    EXPECT_EQ(moments.second[0], infinity);
    EXPECT_EQ(moments.max[0], infinity);
    EXPECT_EQ(moments.sum[1], -infinity);
    EXPECT_EQ(moments.min[1], -infinity);
    EXPECT_TRUE(std::isnan(moments.sum[2]));
    EXPECT_EQ(moments.second[2], infinity);
    EXPECT_EQ(moments.count[39], 0);
    EXPECT_EQ(moments.missing[39], 70);
    EXPECT_EQ(moments.sum[39], 0);
    EXPECT_EQ(moments.min[39], infinity);
    EXPECT_EQ(moments.max[39], -infinity);
  });
}

TEST(ColumnMoments, ZerosHaveNoSign_SoThatExtremesDoNotDependOnOrder) {
  std::mt19937_64 random(1);
  BlockShape shape = test::plain_shape(2, 1, DType::f64);
  RandomBlock data(shape, random);
  for (const double first : {-0.0, 0.0}) {
    data.set(0, 0, first);
    data.set(1, 0, -first);
    const Moments moments = moments_of(data.block());
    EXPECT_FALSE(std::signbit(moments.min[0]));
    EXPECT_FALSE(std::signbit(moments.max[0]));
  }
}

TEST(ColumnMoments, OfHalvesNearTheirLimit_DoNotOverflow) {
  std::mt19937_64 random(1);
  BlockShape shape = test::plain_shape(100, 17, DType::f16);
  shape.draw = [](std::mt19937_64&) { return 32000.0; };
  RandomBlock data(shape, random);
  data.set(0, 3, -32000);
  const Moments moments = moments_of(data.block());
  EXPECT_EQ(moments.sum[0], 3200000.0);
  EXPECT_EQ(moments.sum[3], 3136000.0);
  EXPECT_EQ(moments.second[0], 100 * 32000.0 * 32000.0);
}

TEST(ColumnMoments, OfEveryHalf_AreThoseValues) {
  for (int bits = 0; bits < 65536; bits += 1 + bits % 5) {
    const auto stored = static_cast<std::uint16_t>(bits);
    Block block;
    block.range = {0, 1};
    for (const bool swapped : {false, true}) {
      const std::uint16_t lying = swapped ? static_cast<std::uint16_t>(stored << 8 | stored >> 8) : stored;
      block.x = DenseRows{reinterpret_cast<const std::byte*>(&lying), {DType::f16, swapped}, 1, 1, 1};
      const auto expected = host::reference_value(block, 0, 0);
      const Moments moments = moments_of(block);
      ASSERT_EQ(moments.missing[0], expected ? 0 : 1) << bits;
      ASSERT_EQ(moments.max[0], expected ? static_cast<double>(*expected) : -infinity) << bits;
    }
  }
}

/// The same values read by every way there is.
TEST(ColumnMoments, OfTheSameValues_AreTheSameBits_InEveryByteOrderAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  for (const std::int64_t columns : {1, 3, 16, 37, 63, 64, 100}) {
    BlockShape shape = test::plain_shape(1301, columns, columns % 2 == 0 ? DType::f32 : DType::f64);
    shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>()(r); };
    std::mt19937_64 random(seed);
    const RandomBlock native(shape, random);
    const Moments expected = moments_of(native.block());
    for (int other = 1; other < 8; ++other) {
      shape.type.swapped = (other & 1) != 0;
      shape.gap = (other & 2) != 0 ? 3 : 0;
      random.seed(seed);
      const RandomBlock data(shape, random);
      Block block = data.block();
      const std::vector<std::uint8_t> nothing(static_cast<std::size_t>(shape.rows * columns), 0);
      if ((other & 4) != 0) block.missing = MaskView{nothing.data(), shape.rows, columns, columns};
      const Moments moments = moments_of(block);
      EXPECT_EQ(moments.count, expected.count);
      EXPECT_TRUE(same_bits(moments.sum, expected.sum)) << columns << " columns, way " << other << " seed " << seed;
      EXPECT_TRUE(same_bits(moments.second, expected.second)) << columns << " columns, way " << other;
      EXPECT_TRUE(same_bits(moments.min, expected.min) && same_bits(moments.max, expected.max));
    }
  }
}

TEST(ColumnMoments, OfNoRows_AreNeutral) {
  Block block;
  block.x = DenseRows{nullptr, {DType::f32, false}, 0, 3, 3};
  const Moments moments = moments_of(block);
  EXPECT_EQ(moments.count, std::vector<std::int64_t>(3, 0));
  EXPECT_EQ(moments.missing, std::vector<std::int64_t>(3, 0));
  EXPECT_EQ(moments.sum, std::vector<double>(3, 0.0));
  EXPECT_EQ(moments.min, std::vector<double>(3, infinity));
  EXPECT_EQ(moments.max, std::vector<double>(3, -infinity));
}

}  // namespace
}  // namespace rowmill
