// Which shapes of library calls blocks of any height make.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "tests/kernels/product_doubles.hpp"

namespace rowmill {
namespace {

constexpr int h200 = 90;

using Shape = std::tuple<int, int, bool, bool, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t>;

/// All of a call but its addresses: by what a library chooses its kernels.
std::set<Shape> shapes_of(const test::RecordingBlas& calls) {
  std::set<Shape> shapes;
  for (const GemmCall& c : calls.gemms) {
    shapes.emplace(0, static_cast<int>(c.factor), c.transpose_a, c.transpose_b, c.add, c.m, c.n, c.k, c.lda, c.ldb,
                   c.ldc, c.batch);
  }
  for (const SyrkCall& c : calls.syrks) shapes.emplace(1, 0, false, false, false, c.n, 0, c.k, c.lda, 0, c.ldc, 1);
  return shapes;
}

/// What is loaded at the first call may wait for a collective that waits for it: no call may have a shape of its own.
TEST(ProductPlan, OfABlockOfAnyHeight_CallsOnlyShapesThatWereCalledBefore) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const ElementType type{DType::u8, false};
  for (const Precision precision : all_precisions()) {
    for (const std::int64_t longest : {1LL, 17LL, 200LL, 401LL, 5003LL, 16384LL, 70001LL, 300000LL}) {
      for (const std::int64_t columns : {5LL, 129LL, 1000LL, 9001LL}) {
        const ProductChoice choice{precision, random() % 2 == 0 ? 128 : 384};
        ProductLimits limits;
        limits.rows = longest;
        const ProductScratch at = product_scratch(columns, precision, limits);
        auto* const scratch = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
        const test::Extent work{scratch + at.work, scratch + at.sums}, sums{scratch + at.sums, scratch + at.greatest};
        test::RecordingBlas before(work, sums, h200, false);
        call_all_shapes(type, columns, choice, scratch, before, limits);
        const std::set<Shape> called = shapes_of(before);
        ASSERT_FALSE(called.empty());
        for (int round = 0; round < 12; ++round) {
          const std::int64_t rows = round == 0 ? longest : 1 + static_cast<std::int64_t>(random() % longest);
          test::RecordingBlas now(work, sums, h200, false);
          test::CountingKernels kernels(at.sums - at.work);
          Block block;
          block.x = DenseRows{nullptr, type, rows, columns, columns};
          run_product(block, {}, choice, h200, scratch, nullptr, kernels, now, limits);
          const std::set<Shape> shapes = shapes_of(now);
          ASSERT_TRUE(std::includes(called.begin(), called.end(), shapes.begin(), shapes.end()))
              << name_of(precision) << " " << rows << " of " << longest << " x " << columns << " in "
              << choice.chain_rows << ", seed " << seed;
          ASSERT_EQ(kernels.converted, rows);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rowmill
