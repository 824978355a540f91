// Every operation but the product against the references of kernels/host, on a device.
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "kernels/host/reference.hpp"
#include "tests/gpu/test_device.hpp"
#include "tests/kernels/host_walk.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using test::DeviceArray;
using test::DeviceBlock;
using test::PoisonedMoments;
using test::RandomBlock;
using test::same_bits;

constexpr double infinity = std::numeric_limits<double>::infinity();

class DeviceOps : public test::OnTestDevice {
 protected:
  template <typename T>
  DeviceArray<T> array(const std::vector<T>& values) const {
    return {backend(), queue_, values};
  }

  /// Prepares for the block, and runs.
  PoisonedMoments moments_of(const Block& block, bool misaligned = false, const std::vector<double>& shift = {},
                             const std::vector<double>& scale = {}) const {
    prepare(block);
    const std::int64_t columns = column_count(block.x);
    const DeviceBlock there(backend(), queue_, block, misaligned);
    const auto shifts = array(shift), scales = array(scale);
    const ColumnMap map{shift.empty() ? nullptr : shifts.data(), scale.empty() ? nullptr : scales.data()};
    const DeviceArray<std::int64_t> count(backend(), queue_, columns), missing(backend(), queue_, columns);
    const DeviceArray<double> sum(backend(), queue_, columns), second(backend(), queue_, columns),
        min(backend(), queue_, columns), max(backend(), queue_, columns);
    ops().column_moments(there.block(), map,
                         {count.data(), missing.data(), sum.data(), second.data(), min.data(), max.data()}, queue_);
    PoisonedMoments moments(columns);
    moments.count = count.fetch();
    moments.missing = missing.fetch();
    moments.sum = sum.fetch();
    moments.second = second.fetch();
    moments.min = min.fetch();
    moments.max = max.fetch();
    return moments;
  }
};

TEST_F(DeviceOps, DeviceHasAName) {
  EXPECT_GT(ops().device_name().size(), 3u);
  EXPECT_EQ(ops().compute_capability() > 0, backend().name() == "cuda");
  EXPECT_EQ(&ops().backend(), &backend());
}

/// Whole numbers with whole shifts and scales that are powers of two: every sum is exact.
TEST_F(DeviceOps, MomentsOfWholeNumbers_AreExact_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(250); ++round) {
    test::BlockShape shape = test::random_shape(random);
    if (random() % 4 == 0) shape.rows += static_cast<std::int64_t>(random() % 900);
    const RandomBlock data(shape, random);
    std::vector<double> shift(static_cast<std::size_t>(shape.columns)), scale(shift.size());
    for (double& s : shift) s = static_cast<double>(random() % 100) - 50;
    for (double& s : scale) s = std::ldexp(1.0, static_cast<int>(random() % 5) - 2);
    if (random() % 3 == 0) shift.clear();
    if (random() % 2 == 0) scale.clear();
    const ColumnMap map{shift.empty() ? nullptr : shift.data(), scale.empty() ? nullptr : scale.data()};
    const host::ReferenceMoments expected = host::reference_moments(data.block(), map);
    for (const bool misaligned : {false, true}) {
      const PoisonedMoments moments = moments_of(data.block(), misaligned, shift, scale);
      ASSERT_EQ(moments.count, expected.count) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(moments.missing, expected.missing) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(moments.min, expected.min) << test::describe(shape) << " seed " << seed;
      ASSERT_EQ(moments.max, expected.max) << test::describe(shape) << " seed " << seed;
      for (std::size_t j = 0; j < moments.sum.size(); ++j) {
        ASSERT_EQ(moments.sum[j], expected.sum[j]) << test::describe(shape) << " column " << j << " seed " << seed;
        ASSERT_EQ(moments.second[j], expected.second[j]) << test::describe(shape) << " seed " << seed;
      }
    }
  }
}

TEST_F(DeviceOps, MomentsOfRealNumbers_StayWithinRoundingAndAreTheSameBitsEveryTime) {
  const std::uint64_t seed = std::random_device{}();
  for (const std::int64_t columns : {1, 3, 16, 100, 70001}) {
    test::BlockShape shape = test::plain_shape(columns > 1000 ? 9 : 20011, columns, DType::f32);
    shape.draw = [](std::mt19937_64& r) { return static_cast<float>(std::normal_distribution<double>(3, 1)(r)); };
    shape.nan_share = columns == 16 ? 0.01 : 0;
    std::mt19937_64 random(seed);
    const RandomBlock data(shape, random);
    const host::ReferenceMoments reference = host::reference_moments(data.block(), {});
    const PoisonedMoments first = moments_of(data.block());
    for (std::size_t j = 0; j < first.sum.size(); ++j) {
      const auto size = static_cast<double>(reference.absolute[j]);
      ASSERT_NEAR(first.sum[j], static_cast<double>(reference.sum[j]), 200 * 0x1p-53 * size) << "seed " << seed;
      const auto second = static_cast<double>(reference.second[j]);
      ASSERT_NEAR(first.second[j], second, 200 * 0x1p-53 * second) << "seed " << seed;
    }
    for (int again = 0; again < 3; ++again) {
      // other bytes, the same values: the order of additions must not change with them
      shape.type = {again == 1 ? DType::f64 : DType::f32, again == 2};
      random.seed(seed);
      const RandomBlock same(shape, random);
      const PoisonedMoments moments = moments_of(same.block(), backend().name() == "cuda" && again == 0);
      EXPECT_TRUE(same_bits(moments.sum, first.sum)) << columns << " columns, way " << again << " seed " << seed;
      EXPECT_TRUE(same_bits(moments.second, first.second)) << columns << " columns, way " << again;
    }
  }
}

/// On CUDA: the kernels do what their bodies do on a host, to the bit.
TEST_F(DeviceOps, MomentsOfRealNumbers_AreTheBitsOfTheSharedBodies) {
  if (backend().name() != "cuda") GTEST_SKIP() << "host kernels have bodies of their own";
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const DType type : {DType::f16, DType::f32, DType::f64}) {
    for (const std::int64_t columns : {1, 7, 64, 1000}) {
      test::BlockShape shape = test::plain_shape(3001, columns, type);
      if (type != DType::f16) shape.draw = [](std::mt19937_64& r) { return std::normal_distribution<double>(3, 1)(r); };
      const RandomBlock data(shape, random);
      const std::vector<double> shift(static_cast<std::size_t>(columns), 0.3), scale(shift.size(), 1.7);
      PoisonedMoments expected(columns);
      test::walk_on_host(data.block(), functors::MomentTask{{shift.data(), scale.data()}, expected.view()});
      const PoisonedMoments moments = moments_of(data.block(), false, shift, scale);
      EXPECT_TRUE(same_bits(moments.sum, expected.sum)) << columns << " of " << name_of(type) << " seed " << seed;
      EXPECT_TRUE(same_bits(moments.second, expected.second)) << columns << " of " << name_of(type);
    }
  }
}

TEST_F(DeviceOps, MomentsOfInfinitiesNaNAndSignedZeros_FollowIeee) {
  std::mt19937_64 random(1);
  RandomBlock data(test::plain_shape(70, 40, DType::f32), random);
  data.set(3, 0, infinity);
  data.set(66, 1, -infinity);
  data.set(3, 2, infinity);
  data.set(66, 2, -infinity);
  for (std::int64_t i = 0; i < 70; ++i) data.set(i, 38, i % 2 == 0 ? -0.0 : 0.0);
  for (std::int64_t i = 0; i < 70; ++i) data.set(i, 39, std::nan(""));
  const PoisonedMoments moments = moments_of(data.block());
  EXPECT_EQ(moments.sum[0], infinity);
  EXPECT_EQ(moments.max[0], infinity);
  EXPECT_EQ(moments.sum[1], -infinity);
  EXPECT_EQ(moments.min[1], -infinity);
  EXPECT_TRUE(std::isnan(moments.sum[2]));
  EXPECT_EQ(moments.second[2], infinity);
  EXPECT_FALSE(std::signbit(moments.min[38]));
  EXPECT_FALSE(std::signbit(moments.max[38]));
  EXPECT_EQ(moments.count[39], 0);
  EXPECT_EQ(moments.missing[39], 70);
  EXPECT_EQ(moments.min[39], infinity);
  EXPECT_EQ(moments.max[39], -infinity);
}

TEST_F(DeviceOps, MomentsOfAVeryLongColumn_LoseNothing) {
  const std::int64_t rows = std::int64_t{1} << 22;
  const std::vector<float> ones(static_cast<std::size_t>(rows), 0.1F);
  Block block;
  block.range = {0, rows};
  block.x = DenseRows{reinterpret_cast<const std::byte*>(ones.data()), {DType::f32, false}, rows, 1, 1};
  const PoisonedMoments moments = moments_of(block);
  const double exact = static_cast<double>(0.1F) * static_cast<double>(rows);
  EXPECT_EQ(moments.count[0], rows);
  EXPECT_NEAR(moments.sum[0], exact, exact * 1e-14);
}

TEST_F(DeviceOps, NearestValues_AreTheReferences_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(150); ++round) {
    const test::BlockShape shape = test::random_shape(random);
    const RandomBlock data(shape, random);
    std::vector<double> targets(static_cast<std::size_t>(shape.columns));
    for (double& target : targets) target = static_cast<double>(random() % 1000) / 8 - 60;  // ties are frequent
    prepare(data.block());
    const auto device_targets = array(targets);
    for (const bool misaligned : {false, true}) {
      const DeviceBlock there(backend(), queue_, data.block(), misaligned);
      const DeviceArray<double> out(backend(), queue_, shape.columns);
      ops().nearest_values(there.block(), device_targets.data(), out.data(), queue_);
      ASSERT_EQ(out.fetch(), host::reference_nearest(data.block(), targets.data()))
          << test::describe(shape) << " seed " << seed;
    }
  }
}

TEST_F(DeviceOps, Inspect_FindsTheSmallestMissingPlace_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int found = 0;
  for (int round = 0; round < test::rounds(300); ++round) {
    test::BlockShape shape = test::random_shape(random);
    shape.nan_share = random() % 2 == 0 ? 0.001 : 0;
    const RandomBlock data(shape, random);
    std::int64_t expected = nothing_missing, expected_inexact = 0;
    host::reference_inspect(data.block(), &expected, &expected_inexact);
    prepare(data.block());
    const DeviceBlock there(backend(), queue_, data.block(), random() % 2 == 0);
    const auto first = array<std::int64_t>({nothing_missing}), inexact = array<std::int64_t>({0});
    ops().inspect(there.block(), first.data(), inexact.data(), queue_);
    ASSERT_EQ(first.fetch()[0], expected) << test::describe(shape) << " seed " << seed;
    ASSERT_EQ(inexact.fetch()[0], expected_inexact) << test::describe(shape) << " seed " << seed;
    found += expected != nothing_missing ? 1 : 0;
  }
  EXPECT_GT(found, test::sanitized ? 0 : 50) << "the data did not test much";
}

TEST_F(DeviceOps, Inspect_TellsIntegersWithoutAnExactDouble) {
  for (const bool swapped : {false, true}) {
    for (const auto& [last, answer] : {std::pair<std::uint64_t, int>{(std::uint64_t{1} << 53) + 1, 1},
                                       {(std::uint64_t{1} << 53) + 2, 0},
                                       {std::numeric_limits<std::uint64_t>::max(), 1},
                                       {std::uint64_t{1} << 63, 0}}) {
      std::vector<std::uint64_t> values(5000, swapped ? __builtin_bswap64(3) : 3);
      values[4321] = swapped ? __builtin_bswap64(last) : last;
      Block block;
      block.range = {0, 1000};
      block.x = DenseRows{reinterpret_cast<const std::byte*>(values.data()), {DType::u64, swapped}, 1000, 5, 5};
      prepare(block);
      const DeviceBlock there(backend(), queue_, block);
      const auto first = array<std::int64_t>({nothing_missing}), inexact = array<std::int64_t>({0});
      ops().inspect(there.block(), first.data(), inexact.data(), queue_);
      EXPECT_EQ(inexact.fetch()[0], answer) << last;
      EXPECT_EQ(first.fetch()[0], nothing_missing);
    }
  }
}

TEST_F(DeviceOps, InspectProduct_LooksOnlyIfTheDiagonalHoldsNaN) {
  std::mt19937_64 random(1);
  test::BlockShape shape = test::plain_shape(50, 1100, DType::f32);
  shape.first_row = 1000;
  RandomBlock data(shape, random);
  data.set(20, 7, std::nan(""));
  prepare(data.block());
  const DeviceBlock there(backend(), queue_, data.block());
  std::vector<double> packed(static_cast<std::size_t>(1100 * 1101 / 2), 1.0);
  packed[1] = std::nan("");  // not on the diagonal
  const auto first = array<std::int64_t>({nothing_missing});
  ops().inspect_product(there.block(), array(packed).data(), first.data(), queue_);
  EXPECT_EQ(first.fetch()[0], nothing_missing);
  packed[1099 * 1100 / 2 + 1099] = std::nan("");
  ops().inspect_product(there.block(), array(packed).data(), first.data(), queue_);
  EXPECT_EQ(first.fetch()[0], 1020 * 1100 + 7);
  // the gate closes again
  const auto later = array<std::int64_t>({nothing_missing});
  packed.back() = 1;
  ops().inspect_product(there.block(), array(packed).data(), later.data(), queue_);
  EXPECT_EQ(later.fetch()[0], nothing_missing);
}

double any_double(std::mt19937_64& random) {
  std::uint64_t bits = random();
  if (random() % 8 == 0) bits &= 0x800fffffffffffffu;                                        // subnormal
  if (random() % 12 == 0) bits = (bits & 0x8000000000000000u) | std::uint64_t{0x7ff} << 52;  // infinite
  return std::bit_cast<double>(bits);
}

/// Adding, merging and aligning give the bytes of core/binned.
TEST_F(DeviceOps, BinnedSums_AreTheBytesOfTheReference) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::int64_t count : {1, 5, 255, 1000, 300007}) {
    const auto words = static_cast<std::size_t>(binned_bytes(count) / 8 + 1);
    std::vector<std::int64_t> nothing(words, 0), expected[2] = {nothing, nothing};
    const DeviceArray<std::int64_t> sums[2] = {array(nothing), array(nothing)};
    for (int k = 0; k < 10; ++k) {
      std::vector<double> terms(static_cast<std::size_t>(count));
      for (double& term : terms) term = k < 5 ? std::ldexp(any_double(random), -900) : any_double(random);
      binned_add_reference(binned_view(expected[k % 2].data(), count), terms.data());
      ops().add_binned(binned_view(sums[k % 2].data(), count), array(terms).data(), queue_);
    }
    ASSERT_EQ(sums[0].fetch(), expected[0]) << count << " seed " << seed;
    ASSERT_EQ(sums[1].fetch(), expected[1]) << count << " seed " << seed;
    const auto merged = array(expected[0]);
    auto merged_here = expected[0];
    ops().merge_binned(binned_view(merged.data(), count), binned_view(sums[1].data(), count), queue_);
    binned_merge(binned_view(merged_here.data(), count), binned_view(expected[1].data(), count));
    ASSERT_EQ(merged.fetch(), merged_here) << count << " seed " << seed;
    std::vector<std::int8_t> tops(static_cast<std::size_t>(count));
    const BinnedView here = binned_view(expected[0].data(), count);
    for (std::int64_t i = 0; i < count; ++i)
      tops[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(here.top[i] + static_cast<int>(random() % 5));
    ops().align_binned(binned_view(sums[0].data(), count), array(tops).data(), queue_);
    binned_align(here, tops.data());
    std::copy(tops.begin(), tops.end(), here.top);
    ASSERT_EQ(sums[0].fetch(), expected[0]) << count << " seed " << seed;
  }
}

TEST_F(DeviceOps, SumsAndExtremes_AreThoseOfTheHost) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::int64_t count : {0, 1, 31, 257, 300007}) {
    std::vector<std::int64_t> a(static_cast<std::size_t>(count)), b(a.size()), sum, least, greatest;
    std::vector<double> x(a.size()), y(a.size()), low, high;
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<std::int64_t>(random()) >> 2;
      b[i] = static_cast<std::int64_t>(random()) >> 2;
      x[i] = std::ldexp(static_cast<double>(a[i]), -60);
      y[i] = random() % 7 == 0 ? std::copysign(infinity, static_cast<double>(b[i])) : static_cast<double>(b[i]);
      sum.push_back(a[i] + b[i]);
      least.push_back(std::min(a[i], b[i]));
      greatest.push_back(std::max(a[i], b[i]));
      low.push_back(std::min(x[i], y[i]));
      high.push_back(std::max(x[i], y[i]));
    }
    const auto other = array(b);
    const auto other_doubles = array(y);
    const auto added = array(a), kept_least = array(a), kept_greatest = array(a);
    const auto kept_low = array(x), kept_high = array(x);
    ops().add(added.data(), other.data(), count, queue_);
    ops().keep_min(kept_least.data(), other.data(), count, queue_);
    ops().keep_max(kept_greatest.data(), other.data(), count, queue_);
    ops().keep_min(kept_low.data(), other_doubles.data(), count, queue_);
    ops().keep_max(kept_high.data(), other_doubles.data(), count, queue_);
    EXPECT_EQ(added.fetch(), sum);
    EXPECT_EQ(kept_least.fetch(), least);
    EXPECT_EQ(kept_greatest.fetch(), greatest);
    EXPECT_EQ(kept_low.fetch(), low);
    EXPECT_EQ(kept_high.fetch(), high);
  }
}

/// Two threads, each with a queue of its own, as lanes work.
TEST_F(DeviceOps, TwoQueuesAtOnce_DoNotDisturbEachOther) {
  std::mt19937_64 random(5);
  const RandomBlock data(test::plain_shape(2001, 129, DType::f32), random);
  const host::ReferenceMoments expected = host::reference_moments(data.block(), {});
  const std::vector<double> targets(129, 3.5), nearest = host::reference_nearest(data.block(), targets.data());
  const auto work = [&] {
    const Queue queue = backend().make_queue();
    ops().prepare({{DType::f32, false}, 2001, 129, std::nullopt}, queue);
    const DeviceBlock there(backend(), queue, data.block());
    const DeviceArray<double> device_targets(backend(), queue, targets);
    for (int again = 0; again < 50; ++again) {
      const DeviceArray<std::int64_t> count(backend(), queue, 129), missing(backend(), queue, 129);
      const DeviceArray<double> sum(backend(), queue, 129), second(backend(), queue, 129), min(backend(), queue, 129),
          max(backend(), queue, 129), out(backend(), queue, 129);
      ops().column_moments(there.block(), {},
                           {count.data(), missing.data(), sum.data(), second.data(), min.data(), max.data()}, queue);
      ops().nearest_values(there.block(), device_targets.data(), out.data(), queue);
      EXPECT_EQ(max.fetch(), expected.max);
      EXPECT_EQ(out.fetch(), nearest);
      const std::vector<double> sums = sum.fetch();
      for (std::size_t j = 0; j < sums.size(); ++j) EXPECT_EQ(sums[j], expected.sum[j]);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace
}  // namespace rowmill
