// The sums of a tile of a strip; compiled once for each target (see simd.hpp).
#if defined(ROWMILL_KERNELS_HOST_STRIP_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ROWMILL_KERNELS_HOST_STRIP_INL_HPP
#undef ROWMILL_KERNELS_HOST_STRIP_INL_HPP
#else
#define ROWMILL_KERNELS_HOST_STRIP_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/host/load-inl.hpp"
#include "kernels/host/strip.hpp"

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
template <typename T>
constexpr bool may_be_nan = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                            std::is_same_v<T, hwy::float16_t> || std::is_same_v<T, hwy::bfloat16_t>;

/// A strip of a tile as it lies. What will be wanted next is fetched from `next` on meanwhile, a cache line for each
/// row, if it is not null.
template <typename T>
struct StripRows {
  const T* data;
  std::int64_t stride, rows;
  const std::byte* next;
};

/// The least and greatest of a strip's columns, two vectors of doubles at a time.
template <typename T>
struct LaneRange {
  DoubleVector min0, min1, max0, max1;

  HWY_INLINE LaneRange()
      : min0(hn::Set(Doubles(), std::numeric_limits<double>::infinity())),
        min1(min0),
        max0(hn::Neg(min0)),
        max1(max0) {}
  HWY_INLINE void take(const T*, DoubleVector x0, DoubleVector x1) {
    min0 = hn::Min(min0, x0);
    min1 = hn::Min(min1, x1);
    max0 = hn::Max(max0, x0);
    max1 = hn::Max(max1, x1);
  }
  HWY_INLINE void add_to(StripSums& sums, std::size_t lane) const {
    const Doubles d;
    const std::size_t other = lane + hn::Lanes(d);
    hn::StoreU(hn::Min(hn::LoadU(d, sums.min + lane), min0), d, sums.min + lane);
    hn::StoreU(hn::Min(hn::LoadU(d, sums.min + other), min1), d, sums.min + other);
    hn::StoreU(hn::Max(hn::LoadU(d, sums.max + lane), max0), d, sums.max + lane);
    hn::StoreU(hn::Max(hn::LoadU(d, sums.max + other), max1), d, sums.max + other);
  }
};

#if HWY_TARGET != HWY_SCALAR
/// Floats are compared as they are, both vectors at once.
template <>
struct LaneRange<float> {
  using Floats = hn::ScalableTag<float>;
  hn::Vec<Floats> min, max;

  HWY_INLINE LaneRange() : min(hn::Set(Floats(), std::numeric_limits<float>::infinity())), max(hn::Neg(min)) {}
  HWY_INLINE void take(const float* from, DoubleVector, DoubleVector) {
    const auto x = hn::LoadU(Floats(), from);
    min = hn::Min(min, x);
    max = hn::Max(max, x);
  }
  HWY_INLINE void add_to(StripSums& sums, std::size_t lane) const {
    HWY_ALIGN float least[hn::MaxLanes(Floats())];
    HWY_ALIGN float greatest[hn::MaxLanes(Floats())];
    hn::Store(min, Floats(), least);
    hn::Store(max, Floats(), greatest);
    const Doubles d;
    LaneRange<double> wide;
    wide.take(nullptr, load_doubles(d, least), load_doubles(d, least + hn::Lanes(d)));
    wide.max0 = load_doubles(d, greatest);
    wide.max1 = load_doubles(d, greatest + hn::Lanes(d));
    wide.add_to(sums, lane);
  }
};
#endif

/// Sums of one vector of columns.
struct LaneSums {
  DoubleVector sum, second;

  HWY_INLINE LaneSums() : sum(hn::Zero(Doubles())), second(sum) {}

  HWY_INLINE void take(DoubleVector w) {
    sum = hn::Add(sum, w);
    second = hn::MulAdd(w, w, second);
  }
  HWY_INLINE void add_to(StripSums& sums, std::size_t lane) const {
    const Doubles d;
    hn::StoreU(hn::Add(hn::LoadU(d, sums.sum + lane), sum), d, sums.sum + lane);
    hn::StoreU(hn::Add(hn::LoadU(d, sums.second + lane), second), d, sums.second + lane);
  }
};

/// The working values of one vector of columns.
template <bool kScaled>
struct LaneMap {
  DoubleVector shift, scale;

  HWY_INLINE LaneMap(const StripMap& map, std::size_t lane)
      : shift(hn::LoadU(Doubles(), map.shift + lane)), scale(hn::LoadU(Doubles(), map.scale + lane)) {}
  HWY_INLINE DoubleVector operator()(DoubleVector x) const {
    const auto shifted = hn::Sub(x, shift);
    if constexpr (kScaled) return hn::Mul(shifted, scale);
    return shifted;
  }
};

/// Adds two vectors' lanes of a tile to `sums`, or says that a NaN may be among them (`sums` is then left alone): a sum
/// that is NaN tells, no element need be looked at.
template <bool kScaled, typename T>
HWY_INLINE bool add_clean(const StripRows<T>& rows, const StripMap& map, std::size_t lane, StripSums& sums) {
  const Doubles d;
  const std::size_t other = lane + hn::Lanes(d);
  const LaneMap<kScaled> map0(map, lane), map1(map, other);
  LaneSums sums0, sums1;
  LaneRange<T> range;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const T* const from = rows.data + i * rows.stride;
    if (lane == 0 && rows.next != nullptr) __builtin_prefetch(rows.next + 64 * i, 0, 2);
    const auto x0 = load_doubles(d, from + lane), x1 = load_doubles(d, from + other);
    range.take(from + lane, x0, x1);
    sums0.take(map0(x0));
    sums1.take(map1(x1));
  }
  if (may_be_nan<T> && !hn::AllFalse(d, hn::Or(hn::IsNaN(sums0.sum), hn::IsNaN(sums1.sum)))) return false;
  sums0.add_to(sums, lane);
  sums1.add_to(sums, other);
  range.add_to(sums, lane);
  return true;
}

/// The same for one vector's lanes, NaN skipped and counted.
template <bool kScaled, typename T>
HWY_INLINE void add_masked(const StripRows<T>& rows, const StripMap& map, std::size_t lane, StripSums& sums) {
  const Doubles d;
  const LaneMap<kScaled> lane_map(map, lane);
  const auto infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  LaneSums lane_sums;
  auto missing = hn::Zero(d), min = infinity, max = hn::Neg(infinity);
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const auto x = load_doubles(d, rows.data + i * rows.stride + lane);
    const auto missed = hn::IsNaN(x);
    missing = hn::Add(missing, hn::IfThenElseZero(missed, hn::Set(d, 1.0)));
    min = hn::Min(min, hn::IfThenElse(missed, infinity, x));
    max = hn::Max(max, hn::IfThenElse(missed, hn::Neg(infinity), x));
    lane_sums.take(hn::IfThenZeroElse(missed, lane_map(x)));
  }
  lane_sums.add_to(sums, lane);
  hn::StoreU(hn::Add(hn::LoadU(d, sums.missing + lane), missing), d, sums.missing + lane);
  hn::StoreU(hn::Min(hn::LoadU(d, sums.min + lane), min), d, sums.min + lane);
  hn::StoreU(hn::Max(hn::LoadU(d, sums.max + lane), max), d, sums.max + lane);
  sums.any_missing = true;
}

template <bool kScaled, typename T>
HWY_INLINE void add_lanes(const StripRows<T>& rows, const StripMap& map, std::size_t lane, StripSums& sums) {
  if (add_clean<kScaled>(rows, map, lane, sums)) return;
  add_masked<kScaled>(rows, map, lane, sums);
  add_masked<kScaled>(rows, map, lane + hn::Lanes(Doubles()), sums);
}

template <typename T>
HWY_INLINE void add_tile(const StripRows<T>& rows, const StripMap& map, StripSums& sums) {
  for (std::size_t lane = 0; lane < strip; lane += 2 * hn::Lanes(Doubles())) {
    if (map.scaled) {
      add_lanes<true>(rows, map, lane, sums);
    } else {
      add_lanes<false>(rows, map, lane, sums);
    }
  }
  sums.rows += rows.rows;
}

}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
