#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/host/kernels.hpp"
#include "kernels/host/reference.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using test::BlockShape;
using test::RandomBlock;

TEST(Inspect, FindsTheSmallestMissingPlace_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int found = 0;
  for (int round = 0; round < test::rounds(600); ++round) {
    BlockShape shape = test::random_shape(random);
    shape.nan_share = random() % 2 == 0 ? 0.001 : 0;
    const RandomBlock data(shape, random);
    std::int64_t expected = nothing_missing, expected_inexact = 0;
    host::reference_inspect(data.block(), &expected, &expected_inexact);
    test::for_each_target([&](const std::string&) {
      std::int64_t first = nothing_missing, inexact = 0;
      host::inspect(data.block(), &first, &inexact);
      ASSERT_EQ(first, expected) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(inexact, expected_inexact) << test::describe(shape) << " seed " << seed;
    });
    found += expected != nothing_missing ? 1 : 0;
  }
  EXPECT_GT(found, test::sanitized ? 0 : 100) << "the data did not test much";
}

TEST(Inspect, KeepsWhatWasThereIfItIsSmaller) {
  std::mt19937_64 random(1);
  BlockShape shape = test::plain_shape(4, 5, DType::f64);
  shape.first_row = 100;
  RandomBlock data(shape, random);
  data.set(2, 3, std::nan(""));
  std::int64_t first = nothing_missing, inexact = 1;
  host::inspect(data.block(), &first, &inexact);
  EXPECT_EQ(first, 102 * 5 + 3);
  EXPECT_EQ(inexact, 1);
  first = 17;
  host::inspect(data.block(), &first, &inexact);
  EXPECT_EQ(first, 17);
}

TEST(Inspect, AfterTheProduct_FindsTheSameAsInspect) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int found = 0;
  for (int round = 0; round < test::rounds(200); ++round) {
    BlockShape shape = test::random_shape(random);
    shape.nan_share = random() % 2 == 0 ? 0.001 : 0;
    const RandomBlock data(shape, random);
    const Precision precision = random() % 2 == 0 ? Precision::fp32 : Precision::fp64;
    const std::int64_t columns = column_count(data.block().x);
    std::vector<std::byte> scratch(host::cross_product_scratch(columns, precision));
    std::vector<double> packed(static_cast<std::size_t>(columns * (columns + 1) / 2));
    std::int64_t expected = nothing_missing, expected_inexact = 0;
    host::reference_inspect(data.block(), &expected, &expected_inexact);
    test::for_each_target([&](const std::string&) {
      std::int64_t first = nothing_missing;
      host::cross_product(data.block(), {}, precision, scratch.data(), packed.data());
      host::inspect_product(data.block(), packed.data(), &first);
      ASSERT_EQ(first, expected) << test::describe(shape) << " seed " << seed;
    });
    found += expected != nothing_missing ? 1 : 0;
  }
  EXPECT_GT(found, test::sanitized ? 0 : 30) << "the data did not test much";
}

TEST(Inspect, InfinitiesAreNotMissing) {
  std::mt19937_64 random(1);
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const bool swapped : {false, true}) {
      BlockShape shape = test::plain_shape(3, 700, type);
      shape.type.swapped = swapped;
      RandomBlock data(shape, random);
      data.set(1, 600, std::numeric_limits<double>::infinity());
      data.set(2, 1, -std::numeric_limits<double>::infinity());
      std::int64_t first = nothing_missing, inexact = 0;
      host::inspect(data.block(), &first, &inexact);
      EXPECT_EQ(first, nothing_missing) << name_of(ElementType{type, swapped});
    }
  }
}

template <typename T>
std::int64_t inexact_of(T value, DType type, bool swapped) {
  std::vector<T> values(5000, T{3});
  values[4321] = value;
  if (swapped) {
    for (T& v : values) v = static_cast<T>(__builtin_bswap64(static_cast<std::uint64_t>(v)));
  }
  Block block;
  block.range = {0, 1000};
  block.x = DenseRows{reinterpret_cast<const std::byte*>(values.data()), {type, swapped}, 1000, 5, 5};
  std::int64_t first = nothing_missing, inexact = 0;
  host::inspect(block, &first, &inexact);
  EXPECT_EQ(first, nothing_missing);
  return inexact;
}

TEST(Inspect, TellsIntegersWithoutAnExactDouble) {
  constexpr std::int64_t two53 = std::int64_t{1} << 53;
  for (const bool swapped : {false, true}) {
    EXPECT_EQ(inexact_of<std::int64_t>(two53, DType::i64, swapped), 0);
    EXPECT_EQ(inexact_of<std::int64_t>(two53 + 1, DType::i64, swapped), 1);
    EXPECT_EQ(inexact_of<std::int64_t>(-two53 - 1, DType::i64, swapped), 1);
    EXPECT_EQ(inexact_of<std::int64_t>(two53 + 2, DType::i64, swapped), 0);
    EXPECT_EQ(inexact_of<std::int64_t>(std::numeric_limits<std::int64_t>::max(), DType::i64, swapped), 1);
    EXPECT_EQ(inexact_of<std::int64_t>(std::numeric_limits<std::int64_t>::min(), DType::i64, swapped), 0);
    EXPECT_EQ(inexact_of<std::uint64_t>(std::numeric_limits<std::uint64_t>::max(), DType::u64, swapped), 1);
    EXPECT_EQ(inexact_of<std::uint64_t>(std::uint64_t{1} << 63, DType::u64, swapped), 0);
    EXPECT_EQ(inexact_of<std::uint64_t>((std::uint64_t{1} << 63) + 1024, DType::u64, swapped), 1);
    EXPECT_EQ(inexact_of<std::uint64_t>((std::uint64_t{1} << 63) + 2048, DType::u64, swapped), 0);
  }
}

}  // namespace
}  // namespace rowmill
