// The bodies of the CUDA kernels, run on the host: element by element, and all threads of a kernel one after another.
#include "kernels/functors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/binned_body.hpp"
#include "kernels/column_walk.hpp"
#include "kernels/host/kernels.hpp"
#include "kernels/host/read_tile.hpp"
#include "kernels/host/reference.hpp"
#include "kernels/inspect_walk.hpp"
#include "tests/kernels/host_walk.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using functors::AnyRows;
using test::BlockShape;
using test::RandomBlock;
using test::same_bits;

constexpr double largest = std::numeric_limits<double>::max();

bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

/// Bits of any element: all exponents and both signs, and often all ones or zeros somewhere (NaN, infinities,
/// subnormals, the ends of integers).
std::uint64_t any_bits(std::mt19937_64& random) {
  std::uint64_t bits = random();
  if (random() % 4 == 0) bits |= std::uint64_t{0xffff} << random() % 64;
  if (random() % 4 == 0) bits &= ~(std::uint64_t{0xffff} << random() % 64);
  if (random() % 8 == 0) bits &= std::uint64_t{0xffff00000000ffff};
  return bits;
}

/// A value of each type and byte order from random bits, against the host kernels' way and the reference.
TEST(Functors, LoadAnyBitsOfEveryType_AsTheHostKernelsDo) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const DType dtype : test::all_types) {
    for (const bool swapped : {false, true}) {
      constexpr std::int64_t count = 3000;
      std::vector<std::uint64_t> words(count);
      for (std::uint64_t& word : words) word = any_bits(random);
      Block block;
      const std::int64_t elements = count * 8 / static_cast<std::int64_t>(size_of(dtype));
      block.x = DenseRows{reinterpret_cast<const std::byte*>(words.data()), {dtype, swapped}, 1, elements, elements};
      block.range = {0, 1};
      std::vector<double> host(static_cast<std::size_t>(elements));
      host::read_tile(block, {0, 1, 0, elements}, host.data(), elements);
      const AnyRows rows = functors::any_rows(block);
      for (std::int64_t j = 0; j < elements; ++j) {
        const double value = functors::value_at(rows, 0, j);
        ASSERT_TRUE(same_number(value, host[static_cast<std::size_t>(j)]))
            << name_of(ElementType{dtype, swapped}) << " element " << j << " seed " << seed;
        const auto reference = host::reference_value(block, 0, j);
        ASSERT_EQ(std::isnan(value), !reference) << j;
        if (reference) {
          ASSERT_EQ(value, static_cast<double>(*reference)) << j << " seed " << seed;
        }
      }
    }
  }
}

TEST(Functors, LoadEveryHalf) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    Block block;
    block.range = {0, 1};
    for (const DType dtype : {DType::f16, DType::bf16}) {
      block.x = DenseRows{reinterpret_cast<const std::byte*>(&half), {dtype, false}, 1, 1, 1};
      const double value = functors::value_at(functors::any_rows(block), 0, 0);
      const auto reference = host::reference_value(block, 0, 0);
      if (reference) {
        ASSERT_TRUE(same_number(value, static_cast<double>(*reference))) << bits;
      } else {
        ASSERT_TRUE(std::isnan(value)) << bits;
      }
    }
  }
}

TEST(Functors, ValueAt_IsTheReferences_InEveryLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(200); ++round) {
    const BlockShape shape = test::random_shape(random);
    const RandomBlock data(shape, random);
    const AnyRows rows = functors::any_rows(data.block());
    ASSERT_EQ(rows.first_row, shape.first_row);
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      for (std::int64_t j = 0; j < shape.columns; ++j) {
        const auto reference = host::reference_value(data.block(), i, j);
        const double value = functors::value_at(rows, i, j);
        ASSERT_EQ(std::isnan(value), !reference) << test::describe(shape) << " seed " << seed;
        if (reference) {
          ASSERT_EQ(value, static_cast<double>(*reference)) << test::describe(shape) << " seed " << seed;
        }
      }
    }
  }
}

using Moments = test::PoisonedMoments;

Moments moments_of(const Block& block, ColumnMap map, bool elementwise, bool* in_vectors = nullptr) {
  Moments moments(column_count(block.x));
  const bool vectors = test::walk_on_host(block, functors::MomentTask{map, moments.view()}, elementwise);
  if (in_vectors != nullptr) *in_vectors = vectors;
  return moments;
}

/// Whole numbers with whole shifts and scales that are powers of two: every sum is exact.
TEST(ColumnWalk, MomentsOfWholeNumbers_AreExact_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int in_vectors = 0;
  for (int round = 0; round < test::rounds(300); ++round) {
    BlockShape shape = test::random_shape(random);
    if (random() % 4 == 0) shape.rows += static_cast<std::int64_t>(random() % 900);
    const RandomBlock data(shape, random);
    std::vector<double> shift(static_cast<std::size_t>(shape.columns)), scale(shift.size());
    for (double& s : shift) s = static_cast<double>(random() % 100) - 50;
    for (double& s : scale) s = std::ldexp(1.0, static_cast<int>(random() % 5) - 2);
    const ColumnMap map{random() % 3 == 0 ? nullptr : shift.data(), random() % 2 == 0 ? nullptr : scale.data()};
    const host::ReferenceMoments expected = host::reference_moments(data.block(), map);
    for (const bool elementwise : {false, true}) {
      bool vectors = false;
      const Moments moments = moments_of(data.block(), map, elementwise, &vectors);
      in_vectors += vectors ? 1 : 0;
      ASSERT_EQ(moments.count, expected.count) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(moments.missing, expected.missing) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(moments.min, expected.min) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(moments.max, expected.max) << test::describe(shape) << " seed " << seed;
      for (std::size_t j = 0; j < shift.size(); ++j) {
        ASSERT_EQ(moments.sum[j], expected.sum[j]) << test::describe(shape) << " column " << j << " seed " << seed;
        ASSERT_EQ(moments.second[j], expected.second[j]) << test::describe(shape) << " seed " << seed;
      }
    }
  }
  EXPECT_GT(in_vectors, test::sanitized ? 0 : 60) << "the data did not test much";
}

/// The promise that bits depend on rows and columns alone.
TEST(ColumnWalk, MomentsOfTheSameValues_AreTheSameBits_ByEveryWay) {
  const std::uint64_t seed = std::random_device{}();
  for (const std::int64_t columns : {1, 3, 16, 37, 64, 100, 32771}) {
    BlockShape shape = test::plain_shape(columns > 1000 ? 3 : 701, columns, DType::f32);
    shape.draw = [](std::mt19937_64& r) { return static_cast<float>(std::normal_distribution<double>()(r)); };
    std::mt19937_64 random(seed);
    const RandomBlock native(shape, random);
    const Moments expected = moments_of(native.block(), {}, false);
    for (int other = 0; other<16; other += columns> 1000 ? 5 : 1) {
      shape.type = {(other & 1) != 0 ? DType::f64 : DType::f32, (other & 2) != 0};
      shape.gap = (other & 4) != 0 ? 3 : 0;
      random.seed(seed);
      const RandomBlock data(shape, random);
      Block block = data.block();
      const std::vector<std::uint8_t> nothing(static_cast<std::size_t>(shape.rows * columns), 0);
      if ((other & 8) != 0) block.missing = MaskView{nothing.data(), shape.rows, columns, columns};
      const Moments moments = moments_of(block, {}, false);
      EXPECT_EQ(moments.count, expected.count);
      EXPECT_TRUE(same_bits(moments.sum, expected.sum)) << columns << " columns, way " << other << " seed " << seed;
      EXPECT_TRUE(same_bits(moments.second, expected.second)) << columns << " columns, way " << other;
      EXPECT_TRUE(same_bits(moments.min, expected.min) && same_bits(moments.max, expected.max));
    }
  }
}

TEST(ColumnWalk, MomentsOfRealNumbers_StayWithinRoundingOfTheReference) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::int64_t columns : {1, 20, 130}) {
    BlockShape shape = test::plain_shape(5001, columns, DType::f64);
    shape.nan_share = columns == 20 ? 0.01 : 0;
    shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>(3, 1)(r); };
    const RandomBlock data(shape, random);
    const host::ReferenceMoments expected = host::reference_moments(data.block(), {});
    const Moments moments = moments_of(data.block(), {}, false);
    for (std::size_t j = 0; j < expected.sum.size(); ++j) {
      const double rounding = 100 * 0x1p-53;
      EXPECT_LE(std::abs(moments.sum[j] - expected.sum[j]), rounding * expected.absolute[j]) << "seed " << seed;
      EXPECT_LE(std::abs(moments.second[j] - expected.second[j]), rounding * expected.second[j]) << "seed " << seed;
    }
  }
}

TEST(ColumnWalk, OfInfinitiesNaNAndSignedZeros_AsTheHostKernelsDo) {
  std::mt19937_64 random(1);
  RandomBlock data(test::plain_shape(70, 40, DType::f32), random);
  data.set(3, 0, functors::infinity);
  data.set(66, 1, -functors::infinity);
  data.set(3, 2, functors::infinity);
  data.set(66, 2, -functors::infinity);
  for (std::int64_t i = 0; i < 70; ++i) data.set(i, 39, std::nan(""));
  for (std::int64_t i = 0; i < 70; ++i) data.set(i, 38, i % 2 == 0 ? -0.0 : 0.0);
  const Moments moments = moments_of(data.block(), {}, false);
  Moments expected(40);
  host::column_moments(data.block(), {}, expected.view());
  EXPECT_EQ(moments.count, expected.count);
  EXPECT_EQ(moments.missing, expected.missing);
  EXPECT_TRUE(same_bits(moments.min, expected.min));
  EXPECT_TRUE(same_bits(moments.max, expected.max));
  for (std::size_t j = 0; j < 40; ++j) {
    EXPECT_TRUE(same_number(moments.sum[j], expected.sum[j])) << j;
    EXPECT_TRUE(same_number(moments.second[j], expected.second[j])) << j;
  }
}

TEST(ColumnWalk, OfNoRows_IsNeutral) {
  Block block;
  block.x = DenseRows{nullptr, {DType::f32, false}, 0, 3, 3};
  const Moments moments = moments_of(block, {}, false);
  EXPECT_EQ(moments.count, std::vector<std::int64_t>(3, 0));
  EXPECT_EQ(moments.sum, std::vector<double>(3, 0.0));
  EXPECT_EQ(moments.min, std::vector<double>(3, functors::infinity));
}

TEST(ColumnWalk, NearestValues_AreTheReferences_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(200); ++round) {
    const BlockShape shape = test::random_shape(random);
    const RandomBlock data(shape, random);
    std::vector<double> targets(static_cast<std::size_t>(shape.columns));
    for (double& target : targets) target = static_cast<double>(random() % 1000) / 8 - 60;  // ties are frequent
    if (random() % 10 == 0) targets[0] = -largest;                                          // distances are infinite
    std::vector<double> expected(targets.size(), -7.5);
    host::nearest_values(data.block(), targets.data(), expected.data());
    if (targets[0] != -largest) {
      ASSERT_EQ(expected, host::reference_nearest(data.block(), targets.data()));
    }
    for (const bool elementwise : {false, true}) {
      std::vector<double> out(targets.size(), -7.5);
      test::walk_on_host(data.block(), functors::NearestTask{targets.data(), out.data()}, elementwise);
      ASSERT_TRUE(same_bits(out, expected)) << test::describe(shape) << " seed " << seed;
    }
  }
}

/// All threads of inspect's kernels.
void inspect(const Block& block, std::int64_t threads, std::int64_t* first_missing, std::int64_t* inexact) {
  const AnyRows rows = functors::any_rows(block);
  std::int64_t special = nothing_missing, masked = nothing_missing;
  const bool is_missing = functors::with_element(rows.type, [](auto e) { return decltype(e)::may_be_missing; });
  for (std::int64_t i = 0; i < threads; ++i) {
    const std::int64_t found = functors::with_element(rows.type, [&](auto element) {
      return functors::inspects_in_vectors(rows) ? functors::special_in_vectors<decltype(element)>(rows, i, threads)
                                                 : functors::special_in_elements(rows, i, threads);
    });
    special = std::min(special, found);
    if (rows.mask != nullptr) masked = std::min(masked, functors::first_in_mask(rows, i, threads));
  }
  if (!is_missing && special != nothing_missing) *inexact = 1;
  const std::int64_t first = std::min(masked, is_missing ? special : nothing_missing);
  if (first != nothing_missing) *first_missing = std::min(*first_missing, rows.first_row * rows.columns + first);
}

TEST(InspectWalk, FindsTheSmallestMissingPlace_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int found = 0, inexact_found = 0;
  for (int round = 0; round < test::rounds(800); ++round) {
    BlockShape shape = test::random_shape(random);
    shape.nan_share = random() % 2 == 0 ? 0.3 / static_cast<double>(shape.rows * shape.columns) : 0;
    if (size_of(shape.type) == 8 && is_integer(shape.type.dtype)) {
      shape.draw = [](std::mt19937_64& r) { return r() % 500 == 0 ? 0x1p60 + 0x1p40 : 3.0; };  // exact
    }
    const RandomBlock data(shape, random);
    std::int64_t expected = nothing_missing, expected_inexact = 0;
    host::reference_inspect(data.block(), &expected, &expected_inexact);
    for (const std::int64_t threads : {1, 7, 64, 1000}) {
      std::int64_t first = nothing_missing, inexact_places = 0;
      inspect(data.block(), threads, &first, &inexact_places);
      ASSERT_EQ(first, expected) << test::describe(shape) << " threads " << threads << " seed " << seed;
      ASSERT_EQ(inexact_places, expected_inexact) << test::describe(shape) << " seed " << seed;
    }
    found += expected != nothing_missing ? 1 : 0;
    inexact_found += static_cast<int>(expected_inexact);
  }
  EXPECT_GT(found, test::sanitized ? 0 : 80) << "the data did not test much";
  EXPECT_EQ(inexact_found, 0);
}

TEST(Functors, TellIntegersWithoutAnExactDouble) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(20000); ++round) {
    const std::uint64_t value = any_bits(random) >> random() % 12;
    const auto nearest = static_cast<double>(value);
    const bool exact = static_cast<long double>(nearest) == static_cast<long double>(value);
    ASSERT_EQ(functors::is_inexact(value), !exact) << value << " seed " << seed;
    const auto stored = static_cast<std::int64_t>(value);
    const bool signed_exact = static_cast<long double>(static_cast<double>(stored)) == static_cast<long double>(stored);
    using Signed = functors::Element<std::int64_t, false>;
    ASSERT_EQ(Signed::is_special(value), !signed_exact) << stored << " seed " << seed;
  }
}

double any_double(std::mt19937_64& random) {
  return std::bit_cast<double>(any_bits(random));
}

/// Against the vector kernels of the host, which cut in their own way.
TEST(BinnedBody, GivesTheBytesOfTheHostKernels) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(300); ++round) {
    const auto count = static_cast<std::int64_t>(1 + random() % 40);
    std::vector<std::int64_t> sums(binned_bytes(count) / 8 + 1, 0), expected = sums, other = sums, merged = sums;
    for (int k = 0; k < 20; ++k) {
      std::vector<double> terms(static_cast<std::size_t>(count));
      for (double& term : terms) {
        term = any_double(random);
        if (random() % 50 == 0) term = random() % 2 == 0 ? largest : std::numeric_limits<double>::denorm_min();
      }
      host::add_binned(binned_view(expected.data(), count), terms.data());
      auto& half = k % 2 == 0 ? merged : other;
      for (std::int64_t i = 0; i < count; ++i) {
        binned::add(binned_view(sums.data(), count), i, terms[static_cast<std::size_t>(i)]);
        binned::add(binned_view(half.data(), count), i, terms[static_cast<std::size_t>(i)]);
      }
    }
    ASSERT_EQ(sums, expected) << "seed " << seed << " round " << round;
    // merged after an alignment and without one
    if (round % 2 == 0) {
      for (std::int64_t i = 0; i < count; ++i)
        binned::align(binned_view(merged.data(), count), i, binned_view(other.data(), count).top[i]);
    }
    for (std::int64_t i = 0; i < count; ++i)
      binned::merge(binned_view(merged.data(), count), binned_view(other.data(), count), i);
    ASSERT_EQ(merged, expected) << "seed " << seed << " round " << round;
  }
}

TEST(Functors, KeepMinAndMax_PassNaNOver_AsTheHostKernelsDo) {
  std::mt19937_64 random(7);
  for (int round = 0; round < test::rounds(1000); ++round) {
    const double acc = any_double(random), value = any_double(random);
    double least = acc, greatest = acc;
    host::keep_min(&least, &value, 1);
    host::keep_max(&greatest, &value, 1);
    EXPECT_TRUE(same_number(functors::KeepMin()(acc, value), least));
    EXPECT_TRUE(same_number(functors::KeepMax()(acc, value), greatest));
  }
}

}  // namespace
}  // namespace rowmill
