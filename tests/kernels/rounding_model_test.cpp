// The a-priori bounds of precisions against a model of what tensor cores do.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "kernels/host/reference.hpp"
#include "kernels/precision.hpp"
#include "kernels/rounding.hpp"
#include "tests/kernels/product_doubles.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/kernels/tensor_core_model.hpp"

namespace rowmill {
namespace {

using test::RandomBlock;

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

/// Signed error of a chain of squares of the values, of their sum.
double chain_error(const TensorCore& core, const std::vector<double>& values) {
  const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  long double exact = 0;
  for (const double v : values) exact += static_cast<long double>(v) * v;
  const double sum = test::chain(core, value, value, static_cast<std::int64_t>(values.size()));
  return static_cast<double>((sum - exact) / exact);
}

std::vector<double> drawn(std::int64_t count, const std::function<double()>& draw) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& v : values) v = draw();
  return values;
}

constexpr Precision tensor_precisions[] = {Precision::tf32, Precision::bf16, Precision::fp16};
constexpr int devices[] = {80, 90, 0};

TEST(TensorCoreModel, AddsExactlyWhatFits) {
  const auto value = [](std::int64_t i) { return static_cast<double>(i % 64); };
  double exact = 0;
  for (std::int64_t i = 0; i < 3000; ++i) exact += value(i) * value(i);
  for (const int device : devices) {
    EXPECT_EQ(test::chain(tensor_core(Precision::bf16, device), value, value, 3000), exact);
  }
}

/// 1 + 2^-24 + 2^-24 in one group: the small ones are cut away with no extra bit, and kept with one.
TEST(TensorCoreModel, CutsBelowItsExtraBits) {
  const std::vector<double> a = {1, 0x1p-12, 0x1p-12, 0};
  const auto value = [&](std::int64_t i) { return a[static_cast<std::size_t>(i)]; };
  EXPECT_EQ(test::chain({4, 0}, value, value, 4), 1);
  EXPECT_EQ(test::chain({4, 1}, value, value, 4), 1 + 0x1p-23);
  EXPECT_EQ(test::chain({1, 1}, value, value, 4), 1) << "one by one they are lost";
}

TEST(ChainBound, HoldsForEveryLengthOfChain) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const Precision precision : tensor_precisions) {
    for (const int device : devices) {
      const TensorCore core = tensor_core(precision, device);
      for (const std::int64_t rows : {1LL, 16LL, 128LL, 384LL, 1024LL, 4096LL}) {
        const double bound = chain_bound(precision, device, rows);
        const auto error = [&](const std::function<double()>& draw) {
          return std::abs(chain_error(core, drawn(rows, draw)));
        };
        EXPECT_LE(error([&] { return rounded_to_bf16(normal(random)); }), bound) << rows << " seed " << seed;
        EXPECT_LE(error([&] { return rounded_to_bf16(1 + std::abs(normal(random))); }), bound) << rows;
        EXPECT_LE(error([&] { return rounded_to_bf16(std::exp(4 * normal(random))); }), bound) << rows;
      }
    }
  }
}

/// A large value first, then squares just below the last bit that is kept: each is cut away whole.
TEST(ChainBound, IsNearlyReachedByTheWorstColumn) {
  for (const Precision precision : tensor_precisions) {
    for (const int device : devices) {
      const TensorCore core = tensor_core(precision, device);
      std::vector<double> values(4096, rounded_to_bf16(std::sqrt(0.99 * std::ldexp(1.0, -23 - core.extra_bits))));
      values[0] = 1;
      const double error = std::abs(chain_error(core, values)), bound = chain_bound(precision, device, 4096);
      EXPECT_LE(error, bound);
      EXPECT_GT(error, bound / 3) << "a bound that is far too wide costs speed";
    }
  }
}

/// Why products are cut into slabs: the bias grows with the rows of a chain. A rule that leaves alignment out (an ulp
/// for each group alone) would not hold.
TEST(ChainBound, IsNeededSinceBiasGrowsWithTheChain) {
  std::mt19937_64 random(std::random_device{}());
  for (const Precision precision : tensor_precisions) {
    const TensorCore core = tensor_core(precision, 90);
    const auto bias = [&](std::int64_t rows) {
      return chain_error(core, drawn(rows, [&] { return rounded_to_bf16(normal(random)); }));
    };
    const double shorter = bias(512), longer = bias(16384);
    EXPECT_LT(shorter, 0) << "sums are cut toward zero";
    EXPECT_LT(longer, 8 * shorter);
    EXPECT_GT(std::abs(longer), chain_bound(precision, 90, 512)) << "a chain 32 times as long breaks the bound";
    std::vector<double> worst(4096, rounded_to_bf16(std::sqrt(0.99 * std::ldexp(1.0, -23 - core.extra_bits))));
    worst[0] = 1;
    EXPECT_GT(std::abs(chain_error(core, worst)), 4096.0 / core.group * 0x1p-23);
  }
}

/// The whole way of a block, replayed with the model: factors rounded, chains, slabs in fp64.
TEST(ProductBound, HoldsForWholeProductsOfEveryPrecision) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::u8, DType::i16}) {
    test::BlockShape shape = test::plain_shape(700, 9, type);
    shape.draw = [&](std::mt19937_64& r) {
      if (is_integer(type)) return std::floor(std::abs(normal(r)) * 60);
      const double value = 1 + normal(r);
      return type == DType::f16 ? rounded_to_half(value) : type == DType::f32 ? rounded_to_float(value) : value;
    };
    const RandomBlock data(shape, random);
    const std::vector<double> shift = drawn(9, [&] { return normal(random); });
    for (const bool shifted : {false, true}) {
      const ColumnMap map{shifted ? shift.data() : nullptr, nullptr};
      std::vector<long double> size;
      const std::vector<long double> expected = host::reference_cross_product(data.block(), map, &size);
      for (const Precision precision : all_precisions()) {
        if (!offers_product(precision, shape.type)) continue;
        for (const std::int64_t rows : {128, 512}) {
          const ProductChoice choice{precision, rows};
          const double bound = product_bound(choice, {shape.type, shifted, 90}, 700);
          const test::ReplayedProduct product = test::replay_product(data.block(), map, choice, 90);
          ASSERT_FALSE(product.redone);
          double error = 0;
          for (std::size_t i = 0; i < expected.size(); ++i) {
            error = std::max(error, static_cast<double>(std::abs(product.packed[i] - expected[i]) / size[i]));
          }
          EXPECT_LE(error, bound) << name_of(precision) << " of " << name_of(type) << " chains of " << rows << " seed "
                                  << seed;
          const bool inexact = shifted && precision != Precision::fp64 && precision != Precision::int8;
          EXPECT_TRUE(!inexact || error > bound * 1e-4) << name_of(precision) << " was not used";
        }
      }
    }
  }
}

}  // namespace
}  // namespace rowmill
