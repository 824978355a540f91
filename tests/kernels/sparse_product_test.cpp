// Sparse rows multiplied entry by entry, against the reference and against the dense way.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/binned.hpp"
#include "kernels/host/kernels.hpp"
#include "kernels/host/reference.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using test::BlockShape;
using test::RandomBlock;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Order-free sums of a packed triangle, and what add_sparse_product adds to them, from poisoned scratch.
class Sums {
 public:
  explicit Sums(std::int64_t columns) : count_(columns * (columns + 1) / 2), memory_(binned_bytes(count_) / 8 + 1) {}

  void add(const Block& block) {
    const std::size_t bytes = host::sparse_product_scratch(row_count(block.x), column_count(block.x));
    std::vector<double> scratch(bytes / sizeof(double), std::nan(""));
    host::add_sparse_product(block, scratch.data(), view());
  }
  BinnedView view() { return binned_view(memory_.data(), count_); }
  std::vector<double> rounded() {
    std::vector<double> values(static_cast<std::size_t>(count_), -7.5);
    binned_round(view(), values);
    return values;
  }
  const std::vector<std::int64_t>& bits() const { return memory_; }

 private:
  std::int64_t count_;
  std::vector<std::int64_t> memory_;
};

std::vector<double> product_of(const Block& block) {
  Sums sums(column_count(block.x));
  sums.add(block);
  return sums.rounded();
}

std::size_t entry(std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>(i * (i + 1) / 2 + j);
}

TEST(SparseProduct, OfWholeNumbers_IsExact_InEveryTypeOrderAndMask) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(300); ++round) {
    BlockShape shape = test::random_shape(random);
    shape.sparse = true;
    if (random() % 12 == 0 && shape.rows < 100) shape.columns += 400;
    const RandomBlock data(shape, random);
    const std::vector<long double> expected = host::reference_cross_product(data.block(), {});
    test::for_each_target([&](const std::string&) {
      const std::vector<double> packed = product_of(data.block());
      for (std::size_t i = 0; i < packed.size(); ++i) {
        if (std::isnan(expected[i])) {
          ASSERT_TRUE(std::isnan(packed[i])) << i << " " << test::describe(shape) << " seed " << seed;
        } else {
          ASSERT_EQ(packed[i], expected[i]) << i << " " << test::describe(shape) << " seed " << seed;
        }
      }
    });
  }
}

TEST(SparseProduct, OfRealNumbers_StaysWithinThePromisedBound) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::int64_t columns : {1, 3, 61, 100}) {
    BlockShape shape = test::plain_shape(1000, columns, columns == 61 ? DType::f32 : DType::f64);
    shape.sparse = true;
    shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>(1, 2)(r); };
    const RandomBlock data(shape, random);
    std::vector<long double> size;
    const std::vector<long double> expected = host::reference_cross_product(data.block(), {}, &size);
    const std::vector<double> packed = product_of(data.block());
    const double bound = product_bound({Precision::fp64, slab_rows}, {shape.type}, shape.rows);
    for (std::size_t i = 0; i < packed.size(); ++i) {
      ASSERT_LE(std::abs(packed[i] - expected[i]), size[i] * bound) << "seed " << seed;
    }
  }
}

/// Rows and columns without entries, entries in the last column only, and rows after them.
TEST(SparseProduct, OfEmptyRowsAndColumns_LeavesTheirSumsAlone) {
  const std::vector<std::int64_t> row_start = {0, 0, 2, 2, 3, 3}, index = {1, 4, 4};
  const std::vector<float> value = {2, 3, 5};
  Block block;
  block.range = {0, 5};
  block.x =
      CsrRows{row_start.data(), index.data(), reinterpret_cast<const std::byte*>(value.data()), {DType::f32}, 5, 5};
  Sums sums(5);
  sums.add(block);
  std::vector<double> expected(15, 0.0);
  expected[entry(1, 1)] = 4;
  expected[entry(4, 1)] = 6;
  expected[entry(4, 4)] = 34;
  EXPECT_EQ(sums.rounded(), expected);
  sums.add(block);
  for (double& value_twice : expected) value_twice *= 2;
  EXPECT_EQ(sums.rounded(), expected) << "what was there stays";
}

TEST(SparseProduct, OfNoEntriesOrNoRows_AddsNothing) {
  const std::vector<std::int64_t> row_start = {0, 0, 0};
  for (const std::int64_t rows : {0, 2}) {
    Block block;
    block.range = {0, rows};
    block.x = CsrRows{row_start.data(), nullptr, nullptr, {DType::f64}, rows, 3};
    Sums sums(3);
    sums.add(block);
    EXPECT_EQ(sums.bits(), Sums(3).bits()) << rows;
  }
}

/// As in dense rows, where an infinity meets the zeros of its row.
TEST(SparseProduct, InfinitiesAndNaN_SpoilWhatTheySpoilInDenseRows) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(60); ++round) {
    BlockShape shape = test::random_shape(random);
    shape.sparse = true;
    shape.type.dtype = random() % 2 == 0 ? DType::f32 : DType::f64;
    shape.masked = false;
    shape.nan_share = 0;
    shape.draw = [](std::mt19937_64& r) {
      const std::uint64_t drawn = r() % 400;
      if (drawn == 0) return std::nan("");
      if (drawn < 3) return drawn == 1 ? infinity : -infinity;
      return static_cast<double>(r() % 9);
    };
    const RandomBlock data(shape, random);
    const std::int64_t columns = shape.columns;
    std::vector<std::byte> scratch(host::cross_product_scratch(columns, Precision::fp64));
    std::vector<double> dense(static_cast<std::size_t>(columns * (columns + 1) / 2));
    host::cross_product(data.block(), {}, Precision::fp64, scratch.data(), dense.data());
    const std::vector<double> packed = product_of(data.block());
    for (std::size_t i = 0; i < packed.size(); ++i) {
      if (std::isnan(dense[i])) {
        ASSERT_TRUE(std::isnan(packed[i])) << i << " " << test::describe(shape) << " seed " << seed;
      } else {
        ASSERT_EQ(packed[i], dense[i]) << i << " " << test::describe(shape) << " seed " << seed;
      }
    }
  }
}

TEST(SparseProduct, IsTheSameBitsWhateverItIsAddedTo) {
  std::mt19937_64 random(std::random_device{}());
  BlockShape shape = test::plain_shape(300, 70, DType::f32);
  shape.sparse = true;
  shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>()(r); };
  const RandomBlock a(shape, random), b(shape, random), c(shape, random);
  Sums forward(70), backward(70), apart(70);
  for (const RandomBlock* block : {&a, &b, &c}) forward.add(block->block());
  for (const RandomBlock* block : {&c, &b, &a}) backward.add(block->block());
  EXPECT_EQ(forward.rounded(), backward.rounded());
  apart.add(b.block());
  Sums rest(70);
  rest.add(c.block());
  rest.add(a.block());
  binned_merge(apart.view(), rest.view());
  EXPECT_EQ(apart.rounded(), forward.rounded());
}

}  // namespace
}  // namespace rowmill
