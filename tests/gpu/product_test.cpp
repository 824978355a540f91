// The product in every precision that the device offers, against the reference.
#include <cmath>
#include <limits>
#include <random>

#include "kernels/host/reference.hpp"
#include "tests/gpu/test_device.hpp"
#include "tests/kernels/host_walk.hpp"
#include "tests/kernels/random_block.hpp"

namespace rowmill {
namespace {

using test::DeviceArray;
using test::DeviceBlock;
using test::RandomBlock;
using test::same_bits;

constexpr Precision all_precisions[] = {Precision::fp64, Precision::fp32,   Precision::tf32, Precision::bf16,
                                        Precision::fp16, Precision::bf16x3, Precision::int8};

class DeviceProduct : public test::OnTestDevice {
 protected:
  struct Map {
    std::vector<double> shift, scale;  ///< empty: none
  };

  /// From poisoned scratch into a poisoned product.
  std::vector<double> product_of(const Block& block, const Map& map, Precision precision) const {
    prepare(block, precision);
    const std::int64_t columns = column_count(block.x);
    const DeviceBlock there(backend(), queue_, block);
    const DeviceArray<double> shift(backend(), queue_, map.shift), scale(backend(), queue_, map.scale);
    const std::vector<std::uint8_t> poison(ops().cross_product_scratch(element_type(block.x), columns, precision),
                                           0xff);
    const DeviceArray<std::uint8_t> scratch(backend(), queue_, poison);
    const DeviceArray<double> packed(backend(), queue_, columns * (columns + 1) / 2);
    ops().cross_product(there.block(),
                        {map.shift.empty() ? nullptr : shift.data(), map.scale.empty() ? nullptr : scale.data()},
                        precision, scratch.data(), packed.data(), queue_);
    return packed.fetch();
  }
};

std::vector<long double> reference_of(const Block& block, const std::vector<double>& shift,
                                      const std::vector<double>& scale, std::vector<long double>* size = nullptr) {
  return host::reference_cross_product(
      block, {shift.empty() ? nullptr : shift.data(), scale.empty() ? nullptr : scale.data()}, size);
}

TEST_F(DeviceProduct, IsOfferedInDoubleForEveryType) {
  for (const DType type : test::all_types) {
    for (const bool swapped : {false, true}) EXPECT_TRUE(ops().offers(Precision::fp64, {type, swapped}));
  }
}

/// Working values of at most 90 in magnitude are exact in every precision, and so are sums of their products.
TEST_F(DeviceProduct, OfWholeNumbers_IsExact_InEveryPrecisionTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int compared = 0;
  for (int round = 0; round < 40; ++round) {
    test::BlockShape shape = test::random_shape(random);
    if (random() % 4 == 0) shape.rows += 1500;
    if (random() % 12 == 0 && shape.rows < 100) shape.columns += 400;
    const RandomBlock data(shape, random);
    const auto columns = static_cast<std::size_t>(shape.columns);
    Map map;
    if (random() % 3 != 0) map.shift.resize(columns);
    if (random() % 2 != 0) map.scale.resize(columns);
    for (double& s : map.shift) s = static_cast<double>(random() % 61) - 30;
    for (double& s : map.scale) s = random() % 2 == 0 ? 1.0 : -1.0;
    const std::vector<long double> mapped = reference_of(data.block(), map.shift, map.scale);
    for (const Precision precision : all_precisions) {
      if (!ops().offers(precision, shape.type)) continue;
      const bool as_they_are = precision == Precision::int8;
      const Map used = as_they_are ? Map{} : map;
      const std::vector<long double> expected = as_they_are ? reference_of(data.block(), {}, {}) : mapped;
      const std::vector<double> packed = product_of(data.block(), used, precision);
      for (std::size_t i = 0; i < packed.size(); ++i) {
        if (std::isnan(expected[i])) {
          ASSERT_TRUE(std::isnan(packed[i])) << name_of(precision) << " entry " << i << " " << test::describe(shape);
        } else {
          ASSERT_EQ(packed[i], expected[i])
              << name_of(precision) << " entry " << i << " " << test::describe(shape) << " seed " << seed;
        }
      }
      ++compared;
    }
  }
  EXPECT_GE(compared, 40) << "no precision for some type";
}

/// The greatest error that a precision may show on rows of normal numbers, of sum |w_i w_j|: what rounding both factors
/// costs (twice the unit) and as much again for the chain; and the least that shows that it was used.
struct Expected {
  Precision precision;
  double most, least;
};
constexpr Expected expected_errors[] = {
    {Precision::fp64, 1e-13, 0},          {Precision::fp32, fp32_product_bound, 1e-10},
    {Precision::tf32, 4 * 0x1p-11, 1e-8}, {Precision::bf16, 4 * 0x1p-8, 1e-7},
    {Precision::fp16, 4 * 0x1p-11, 1e-8}, {Precision::bf16x3, 4 * 0x1p-16, 1e-10},
};

TEST_F(DeviceProduct, OfRealNumbers_ShowsTheErrorOfItsPrecision_AndTheSameBitsEveryTime) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::int64_t columns : {3, 61, 100}) {
    test::BlockShape shape = test::plain_shape(3001, columns, columns == 61 ? DType::f64 : DType::f32);
    shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>(2, 1)(r); };
    const RandomBlock data(shape, random);
    Map map{std::vector<double>(static_cast<std::size_t>(columns)),
            std::vector<double>(static_cast<std::size_t>(columns))};
    for (double& s : map.shift) s = std::normal_distribution<double>()(random);
    for (double& s : map.scale) s = std::exp(std::normal_distribution<double>()(random));
    std::vector<long double> size;
    const std::vector<long double> reference = reference_of(data.block(), map.shift, map.scale, &size);
    for (const Expected& expected : expected_errors) {
      if (!ops().offers(expected.precision, shape.type)) continue;
      const std::vector<double> packed = product_of(data.block(), map, expected.precision);
      double worst = 0;
      for (std::size_t i = 0; i < packed.size(); ++i)
        worst = std::max(worst, static_cast<double>(std::abs(packed[i] - reference[i]) / size[i]));
      EXPECT_LE(worst, expected.most) << name_of(expected.precision) << " seed " << seed;
      EXPECT_GE(worst, expected.least) << name_of(expected.precision) << " was not used; seed " << seed;
      EXPECT_TRUE(same_bits(product_of(data.block(), map, expected.precision), packed)) << name_of(expected.precision);
    }
  }
}

/// In a column that a precision cannot hold nothing overflows and nothing is lost.
TEST_F(DeviceProduct, OfAColumnOutOfRange_IsDoneInDouble) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const double magnitude : {1e-40, 1e-20, 1e20, 1e60}) {
    test::BlockShape shape = test::plain_shape(500, 50, DType::f64);
    shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>()(r); };
    RandomBlock data(shape, random);
    for (std::int64_t i = 0; i < shape.rows; ++i)
      data.set(i, 7, magnitude * std::normal_distribution<double>()(random));
    std::vector<long double> size;
    const std::vector<long double> reference = reference_of(data.block(), {}, {}, &size);
    for (const Expected& expected : expected_errors) {
      if (!ops().offers(expected.precision, shape.type)) continue;
      const std::vector<double> packed = product_of(data.block(), {}, expected.precision);
      for (std::size_t i = 0; i < packed.size(); ++i) {
        ASSERT_LE(std::abs(packed[i] - reference[i]), size[i] * 1e-13L)
            << name_of(expected.precision) << " entry " << i << " of magnitude " << magnitude << " seed " << seed;
      }
    }
  }
}

/// As lanes do with --missing error.
TEST_F(DeviceProduct, ThenInspectProduct_FindsWhatInspectFinds) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    test::BlockShape shape = test::random_shape(random);
    shape.nan_share = random() % 2 == 0 ? 0.001 : 0;
    const RandomBlock data(shape, random);
    std::int64_t expected = nothing_missing, inexact = 0;
    host::reference_inspect(data.block(), &expected, &inexact);
    prepare(data.block(), Precision::fp64);
    const DeviceBlock there(backend(), queue_, data.block());
    const auto bytes = ops().cross_product_scratch(shape.type, shape.columns, Precision::fp64);
    const DeviceBuffer scratch(backend(), bytes + 64, queue_);
    const DeviceArray<double> packed(backend(), queue_, shape.columns * (shape.columns + 1) / 2);
    const DeviceArray<std::int64_t> first(backend(), queue_, std::vector<std::int64_t>{nothing_missing});
    ops().cross_product(there.block(), {}, Precision::fp64, scratch.data(), packed.data(), queue_);
    ops().inspect_product(there.block(), packed.data(), first.data(), queue_);
    ASSERT_EQ(first.fetch()[0], expected) << test::describe(shape) << " seed " << seed;
    found += expected != nothing_missing ? 1 : 0;
  }
  EXPECT_GT(found, 5) << "the data did not test much";
}

}  // namespace
}  // namespace rowmill
