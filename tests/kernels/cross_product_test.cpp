#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "kernels/host/kernels.hpp"
#include "kernels/host/reference.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using test::BlockShape;
using test::RandomBlock;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The packed product, from poisoned scratch that begins `misaligned` bytes off.
std::vector<double> product_of(const Block& block, ColumnMap map, Precision precision, std::size_t misaligned = 8) {
  const std::int64_t columns = column_count(block.x);
  std::vector<std::byte> scratch(host::cross_product_scratch(columns, precision) + misaligned, std::byte{0xff});
  std::vector<double> packed(static_cast<std::size_t>(columns * (columns + 1) / 2), -7.5);
  host::cross_product(block, map, precision, scratch.data() + misaligned, packed.data());
  return packed;
}

std::size_t entry(std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>(i * (i + 1) / 2 + j);
}

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

/// Whole numbers of at most 120 in magnitude: products and their sums over a slab stay below 2^24, so that fp32 is
/// exact as well as fp64.
TEST(CrossProduct, OfWholeNumbers_IsExact_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(120); ++round) {
    BlockShape shape = test::random_shape(random);
    if (random() % 5 == 0) shape.rows += 380;
    if (random() % 12 == 0 && shape.rows < 100) shape.columns += 400;
    const RandomBlock data(shape, random);
    std::vector<double> shift(shape.columns), scale(shape.columns);
    for (double& s : shift) s = static_cast<double>(random() % 61) - 30;
    for (double& s : scale) s = random() % 2 == 0 ? 1.0 : -1.0;
    const ColumnMap map{random() % 3 == 0 ? nullptr : shift.data(), random() % 2 == 0 ? nullptr : scale.data()};
    const std::vector<long double> expected = host::reference_cross_product(data.block(), map);
    test::for_each_target([&](const std::string&) {
      for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const std::vector<double> packed = product_of(data.block(), map, precision, 8 * (random() % 9));
        for (std::size_t i = 0; i < packed.size(); ++i) {
          if (std::isnan(expected[i])) {
            ASSERT_TRUE(std::isnan(packed[i])) << i << " " << test::describe(shape) << " seed " << seed;
          } else {
            ASSERT_EQ(packed[i], expected[i]) << i << " " << test::describe(shape) << " seed " << seed;
          }
        }
      }
    });
  }
}

/// The bounds promised in ops.hpp, relative to the sum of |w_i w_j|.
TEST(CrossProduct, OfRealNumbers_StaysWithinThePromisedBound) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::int64_t columns : {3, 61, 100}) {
    BlockShape shape = test::plain_shape(1000, columns, columns == 61 ? DType::f32 : DType::f64);
    shape.draw = [](std::mt19937_64& r) { return 2 + normal(r); };
    const RandomBlock data(shape, random);
    std::vector<double> shift(columns), scale(columns);
    for (double& s : shift) s = normal(random);
    for (double& s : scale) s = std::exp(normal(random));
    const ColumnMap map{shift.data(), scale.data()};
    std::vector<long double> size;
    const std::vector<long double> expected = host::reference_cross_product(data.block(), map, &size);
    test::for_each_target([&](const std::string&) {
      const std::vector<double> single = product_of(data.block(), map, Precision::fp32);
      const std::vector<double> twice = product_of(data.block(), map, Precision::fp64);
      double single_error = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        single_error = std::max(single_error, static_cast<double>(std::abs(single[i] - expected[i]) / size[i]));
        ASSERT_LE(std::abs(twice[i] - expected[i]), size[i] * 250 * 0x1p-53L) << "seed " << seed;
      }
      EXPECT_LE(single_error, fp32_product_bound) << "seed " << seed;
      EXPECT_GT(single_error, 1e-10) << "fp32 was not used";
    });
  }
}

TEST(CrossProduct, OfAColumnOutOfFloatRange_IsDoneInDouble) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const double magnitude : {1e-40, 1e-20, 1e20, 1e60, 1e-320}) {
    BlockShape shape = test::plain_shape(500, 50, DType::f64);
    shape.draw = normal;
    RandomBlock data(shape, random);
    for (std::int64_t i = 0; i < shape.rows; ++i) data.set(i, 7, magnitude * normal(random));
    const std::vector<double> single = product_of(data.block(), {}, Precision::fp32);
    const std::vector<double> twice = product_of(data.block(), {}, Precision::fp64);
    EXPECT_EQ(std::memcmp(single.data(), twice.data(), twice.size() * sizeof(double)), 0) << magnitude;
    EXPECT_TRUE(std::isfinite(single[entry(7, 7)]));
    EXPECT_NE(single[entry(7, 6)], 0) << magnitude;
  }
}

TEST(CrossProduct, OnlyTheSlabOutOfRangeIsDoneInDouble) {
  std::mt19937_64 random(std::random_device{}());
  BlockShape shape = test::plain_shape(2 * slab_rows, 5, DType::f32);
  shape.draw = normal;
  RandomBlock data(shape, random), first(test::plain_shape(slab_rows, 5, DType::f32), random);
  for (std::int64_t i = 0; i < slab_rows; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      const double value = j == 2 && i == 9 ? 1e19 : std::floor(100 * normal(random));
      data.set(i, j, value);
      first.set(i, j, value);
    }
  }
  Block rest = data.block();
  rest.x = std::get<DenseRows>(data.block().x).middle_rows(slab_rows, slab_rows);
  const std::vector<double> whole = product_of(data.block(), {}, Precision::fp32);
  const std::vector<double> one = product_of(first.block(), {}, Precision::fp64);
  const std::vector<double> two = product_of(rest, {}, Precision::fp32);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], one[i] + two[i]) << i;
}

TEST(CrossProduct, NaNAndInfinitiesReachThePairsOfTheirColumnOnly) {
  std::mt19937_64 random(std::random_device{}());
  for (const Precision precision : {Precision::fp32, Precision::fp64}) {
    BlockShape shape = test::plain_shape(40, 60, DType::f32);
    shape.draw = [](std::mt19937_64& r) { return 1 + static_cast<double>(r() % 5); };
    RandomBlock data(shape, random);
    data.set(5, 3, std::nan(""));
    data.set(6, 50, infinity);
    test::for_each_target([&](const std::string&) {
      const std::vector<double> packed = product_of(data.block(), {}, precision);
      for (std::int64_t i = 0; i < 60; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) {
          const double value = packed[entry(i, j)];
          if (i == 3 || j == 3) {
            ASSERT_TRUE(std::isnan(value)) << i << " " << j;
          } else if (i == 50 || j == 50) {
            ASSERT_EQ(value, infinity) << i << " " << j;
          } else {
            ASSERT_TRUE(std::isfinite(value)) << i << " " << j;
          }
        }
      }
    });
  }
}

/// Bits depend neither on what runs beside, nor on alignment, nor on the byte order of the file.
TEST(CrossProduct, IsTheSameBitsInEveryThreadAlignmentAndByteOrder) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed), again(seed);
  BlockShape shape = test::plain_shape(777, 131, DType::f32);
  shape.draw = normal;
  const RandomBlock native(shape, random);
  shape.type.swapped = true;
  shape.gap = 3;
  const RandomBlock swapped(shape, again);
  for (const Precision precision : {Precision::fp32, Precision::fp64}) {
    const std::vector<double> expected = product_of(native.block(), {}, precision, 0);
    std::vector<std::vector<double>> results(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < results.size(); ++t) {
      threads.emplace_back(
          [&, t] { results[t] = product_of(t % 2 == 0 ? native.block() : swapped.block(), {}, precision, 8 * t); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) {
      EXPECT_EQ(std::memcmp(result.data(), expected.data(), expected.size() * sizeof(double)), 0) << "seed " << seed;
    }
  }
}

TEST(CrossProduct, OfNoRows_IsZero) {
  Block block;
  block.x = DenseRows{nullptr, {DType::f32, false}, 0, 50, 50};
  for (const Precision precision : {Precision::fp32, Precision::fp64}) {
    EXPECT_EQ(product_of(block, {}, precision), std::vector<double>(50 * 51 / 2, 0.0));
  }
}

}  // namespace
}  // namespace rowmill
