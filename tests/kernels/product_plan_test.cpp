#include "kernels/cuda/product_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/host/reference.hpp"
#include "tests/kernels/product_doubles.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using test::RandomBlock;

constexpr int h200 = 90;

std::vector<double> random_shift(std::mt19937_64& random, std::int64_t columns) {
  std::vector<double> shift(static_cast<std::size_t>(columns));
  for (double& s : shift) s = static_cast<double>(random() % 61) - 30;
  return shift;
}

void expect_equal(const std::vector<double>& packed, const std::vector<long double>& expected,
                  const std::string& what) {
  ASSERT_EQ(packed.size(), expected.size());
  for (std::size_t i = 0; i < packed.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(packed[i])) << i << " " << what;
    } else {
      ASSERT_EQ(packed[i], static_cast<double>(expected[i])) << i << " " << what;
    }
  }
}

/// Whole numbers of at most 90 in magnitude: factors of every precision, and sums of a chain below 2^24.
TEST(ProductPlan, OfWholeNumbers_ReplaysToTheExactProduct_InEveryPrecision) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  constexpr std::int64_t chains[] = {16, 128, 256, 1024};
  for (int round = 0; round < test::rounds(60); ++round) {
    test::BlockShape shape = test::random_shape(random);
    if (random() % 5 == 0) shape.rows += 380;
    if (shape.columns > 100 && shape.rows > 50) shape.columns = 37;
    const RandomBlock data(shape, random);
    const std::vector<double> shift = random_shift(random, shape.columns);
    std::vector<double> scale(shift.size());
    for (double& s : scale) s = random() % 2 == 0 ? 1.0 : -1.0;
    const ColumnMap map{random() % 3 == 0 ? nullptr : shift.data(), random() % 2 == 0 ? nullptr : scale.data()};
    const std::vector<long double> expected = host::reference_cross_product(data.block(), map);
    for (const Precision precision : all_precisions()) {
      if (!offers_product(precision, shape.type)) continue;
      const ProductChoice choice{precision, chains[random() % std::size(chains)]};
      const std::string what = name_of(precision) + " chains of " + std::to_string(choice.chain_rows) + ", " +
                               test::describe(shape) + ", seed " + std::to_string(seed);
      const test::ReplayedProduct product = test::replay_product(data.block(), map, choice, h200);
      expect_equal(product.packed, expected, what);
      if (testing::Test::HasFailure()) return;
      EXPECT_EQ(
          product.redone,
          precision == Precision::int8 && shape.masked &&
              std::isnan(static_cast<double>(*std::max_element(
                  expected.begin(), expected.end(), [](auto a, auto b) { return std::isnan(b) && !std::isnan(a); }))))
          << what;
    }
  }
}

/// Panels, groups and batches that small shapes do not reach; the limits are wide, so columns have to be many.
TEST(ProductPlan, OfSeveralPanels_ReplaysToTheExactProduct) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const Precision precision : all_precisions()) {
    const bool is_double = precision == Precision::fp64;
    const test::BlockShape shape = test::plain_shape(is_double ? 3 : 35, is_double ? 2100 : 300, DType::i8);
    const RandomBlock data(shape, random);
    const std::vector<double> shift = random_shift(random, shape.columns);
    const ColumnMap map{shift.data(), nullptr};
    const ProductChoice choice{precision, 16};
    const ProductPlan plan(shape.rows, shape.columns, choice);
    EXPECT_GT(plan.panels.size(), 1u);
    const test::ReplayedProduct product = test::replay_product(data.block(), map, choice, h200);
    expect_equal(product.packed, host::reference_cross_product(data.block(), map),
                 name_of(precision) + " seed " + std::to_string(seed));
    EXPECT_FALSE(product.redone);
  }
}

TEST(ProductPlan, OfNoRows_IsZero) {
  Block block;
  block.x = DenseRows{nullptr, {DType::f32, false}, 0, 50, 50};
  for (const Precision precision : all_precisions()) {
    if (!offers_product(precision, {DType::f32, false})) continue;
    EXPECT_EQ(test::replay_product(block, {}, {precision, 256}, h200).packed, std::vector<double>(50 * 51 / 2, 0.0));
  }
}

TEST(ProductPlan, MakesOneTriangleOfCalls) {
  std::mt19937_64 random(std::random_device{}());
  const RandomBlock data(test::plain_shape(64, 200, DType::f32), random);
  const auto calls = [&](Precision precision) { return test::replay_product(data.block(), {}, {precision, 32}, h200); };
  const test::ReplayedProduct twice = calls(Precision::fp64);
  ASSERT_EQ(twice.syrks.size(), 1u);
  EXPECT_TRUE(twice.gemms.empty());
  EXPECT_EQ(twice.syrks[0].n, 200);
  EXPECT_EQ(twice.syrks[0].k, 64);
  const test::ReplayedProduct half = calls(Precision::bf16);
  ASSERT_EQ(half.gemms.size(), 2u);
  EXPECT_EQ(half.gemms[0].m, 128);
  EXPECT_EQ(half.gemms[1].m, 200);
  EXPECT_EQ(half.gemms[1].n, 72);
  EXPECT_EQ(half.gemms[1].k, 32);
  EXPECT_EQ(half.gemms[1].batch, 2);
  EXPECT_FALSE(half.gemms[1].add);
  const test::ReplayedProduct split = calls(Precision::bf16x3);
  ASSERT_EQ(split.gemms.size(), 4u);
  EXPECT_EQ(split.gemms[0].k, 96);
  EXPECT_FALSE(split.gemms[0].add);
  EXPECT_EQ(split.gemms[1].k, 32);
  EXPECT_TRUE(split.gemms[1].add);
}

/// What a block does not fit, in one column, is done again in fp64; what fits is not.
TEST(ProductPlan, OfAColumnOutOfRange_IsDoneAgainInDouble) {
  std::mt19937_64 random(std::random_device{}());
  const auto redone = [&](Precision precision, DType type, double value) {
    RandomBlock data(test::plain_shape(40, 20, type), random);
    for (std::int64_t i = 0; i < 40; ++i) data.set(i, 7, i == 3 ? value : 0);
    const test::ReplayedProduct product = test::replay_product(data.block(), {}, {precision, 128}, h200);
    if (product.redone) {
      expect_equal(product.packed, host::reference_cross_product(data.block(), {}), name_of(precision));
    }
    return product.redone;
  };
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::bf16x3}) {
    SCOPED_TRACE(name_of(precision));
    EXPECT_FALSE(redone(precision, DType::f64, 0));
    EXPECT_FALSE(redone(precision, DType::f64, 1));
    EXPECT_FALSE(redone(precision, DType::f64, std::nan("")));
    EXPECT_TRUE(redone(precision, DType::f64, std::numeric_limits<double>::infinity()));
    EXPECT_TRUE(redone(precision, DType::f64, 1e20));
    EXPECT_TRUE(redone(precision, DType::f64, -1e-20));
    EXPECT_TRUE(redone(precision, DType::f64, 1e-310));
  }
  EXPECT_FALSE(redone(Precision::fp64, DType::f64, 1e300));
  EXPECT_TRUE(redone(Precision::fp16, DType::f32, 70000));
  EXPECT_TRUE(redone(Precision::fp16, DType::f32, 0x1p-10));
  EXPECT_FALSE(redone(Precision::fp16, DType::f16, 0x1p-10)) << "stored halves are exact";
  EXPECT_FALSE(redone(Precision::bf16, DType::f32, 70000));
}

/// Every call of every shape stays within its buffers, and scratch within its bound: addresses only, nothing is done.
TEST(ProductPlan, OfAnyShape_StaysWithinItsScratch) {
  for (const Precision precision : all_precisions()) {
    for (const std::int64_t columns : {1LL, 2LL, 17LL, 1000LL, 1024LL, 2047LL, 2049LL, 4097LL, 65535LL, 65536LL}) {
      for (const std::int64_t rows : {1LL, 15LL, 16LL, 17LL, 127LL, 4096LL, 131072LL, 3'000'000'000LL}) {
        if (rows * columns > 8'000'000'000LL) continue;
        for (const std::int64_t chain : {128LL, 384LL, 4096LL}) {
          SCOPED_TRACE(name_of(precision) + " " + std::to_string(rows) + " x " + std::to_string(columns) + " in " +
                       std::to_string(chain));
          const ElementType type{DType::u8, false};
          const ProductScratch at = product_scratch(columns, precision);
          EXPECT_LE(at.total, (256LL << 20) + 17 * columns);
          auto* const scratch = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
          Block block;
          block.x = DenseRows{nullptr, type, rows, columns, columns};
          test::RecordingBlas blas({scratch + at.work, scratch + at.sums}, {scratch + at.sums, scratch + at.greatest},
                                   h200, false);
          test::CountingKernels kernels(at.sums - at.work);
          run_product(block, {}, {precision, chain}, h200, scratch, nullptr, kernels, blas);
          const ProductPlan plan(rows, columns, {precision, chain});
          EXPECT_EQ(kernels.converted, rows);
          EXPECT_EQ(kernels.folded, plan.slabs * plan.product_columns);
          const bool in_chains = precision != Precision::fp64 && precision != Precision::int8;
          EXPECT_TRUE(!in_chains || plan.slab_rows <= chain);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

/// Limits so small that a block takes several batches, of several groups of slabs, in several panels.
TEST(ProductPlan, OfSeveralBatches_ReplaysToTheExactProduct) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const Precision precision : all_precisions()) {
    for (int round = 0; round < 4; ++round) {
      const auto columns = 33 + static_cast<std::int64_t>(random() % 40);
      const auto rows = 170 + static_cast<std::int64_t>(random() % 60);
      const test::BlockShape shape = test::plain_shape(rows, columns, DType::u8);
      const RandomBlock data(shape, random);
      const std::vector<double> shift = random_shift(random, columns);
      const ColumnMap map{round % 2 == 0 ? nullptr : shift.data(), nullptr};
      const ProductChoice choice{precision, 16};
      // batches of 48 rows, and panels of 16 columns of which two slabs are summed by one call
      const ProductPlan whole(rows, columns, choice);
      const std::int64_t row_bytes = whole.copies * whole.leading * bytes_of(whole.factor);
      const ProductLimits limits{row_bytes * 50, 31 * whole.leading * sum_bytes_of(whole.factor)};
      const ProductPlan plan(rows, columns, choice, limits);
      EXPECT_GE(plan.batches(), 4);
      EXPECT_GE(plan.panels.size(), 3u);
      const test::ReplayedProduct product = test::replay_product(data.block(), map, choice, h200, limits);
      expect_equal(product.packed, host::reference_cross_product(data.block(), map),
                   name_of(precision) + " " + test::describe(shape) + " seed " + std::to_string(seed));
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// Slabs behind those of a short block are multiplied as they lie, poisoned here, and show in nothing.
TEST(ProductPlan, OfABlockThatIsShorterThanTheLongest_ReplaysToTheExactProduct) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const Precision precision : all_precisions()) {
    for (int round = 0; round < 6; ++round) {
      const auto columns = 20 + static_cast<std::int64_t>(random() % 40);
      const test::BlockShape shape =
          test::plain_shape(1 + static_cast<std::int64_t>(random() % 150), columns, DType::i8);
      const RandomBlock data(shape, random);
      const std::vector<double> shift = random_shift(random, columns);
      const ProductChoice choice{precision, 16};
      // batches of 48 rows, of which a call takes two slabs, as in OfSeveralBatches
      const ProductPlan whole(shape.rows, columns, choice);
      const std::int64_t row_bytes = whole.copies * whole.leading * bytes_of(whole.factor);
      ProductLimits limits{row_bytes * 50, 31 * whole.leading * sum_bytes_of(whole.factor)};
      if (round % 2 == 0) limits = ProductLimits{};
      limits.rows = shape.rows + static_cast<std::int64_t>(random() % 100);
      const test::ReplayedProduct product =
          test::replay_product(data.block(), {shift.data(), nullptr}, choice, h200, limits);
      expect_equal(product.packed, host::reference_cross_product(data.block(), {shift.data(), nullptr}),
                   name_of(precision) + " of " + std::to_string(limits.rows) + " " + test::describe(shape) + " seed " +
                       std::to_string(seed));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ProductPlan, CutsRowsIntoChains) {
  const ProductPlan plan(5000, 300, {Precision::bf16, 512});
  EXPECT_EQ(plan.slab_rows, 512);
  EXPECT_EQ(plan.slabs, 10);
  EXPECT_EQ(plan.batches(), 1);
  EXPECT_EQ(plan.leading, 304);
  EXPECT_EQ(ProductPlan(100, 300, {Precision::bf16, 512}).slab_rows, 112) << "few rows are one short slab";
  ProductLimits limits;
  limits.rows = 5000;
  EXPECT_EQ(ProductPlan(100, 300, {Precision::bf16, 512}, limits).slab_rows, 512) << "if there is no longer block";
  EXPECT_EQ(ProductPlan(200'000, 300, {Precision::int8, 512}).slab_rows, int8_chain_rows);
  EXPECT_EQ(ProductPlan(200'000, 300, {Precision::int8, 512}).product_columns, 301);
}

}  // namespace
}  // namespace rowmill
