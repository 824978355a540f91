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

/// The sums of one vector of columns.
struct LaneSums {
  DoubleVector sum, second, missing, min, max;

  HWY_INLINE LaneSums()
      : sum(hn::Zero(Doubles())),
        second(sum),
        missing(sum),
        min(hn::Set(Doubles(), std::numeric_limits<double>::infinity())),
        max(hn::Neg(min)) {}

  template <bool kMasked>
  HWY_INLINE void take(DoubleVector x, DoubleVector w) {
    const Doubles d;
    if constexpr (kMasked) {
      const auto infinity = hn::Set(d, std::numeric_limits<double>::infinity());
      const auto missed = hn::IsNaN(x);
      w = hn::IfThenZeroElse(missed, w);
      missing = hn::Add(missing, hn::IfThenElseZero(missed, hn::Set(d, 1.0)));
      min = hn::Min(min, hn::IfThenElse(missed, infinity, x));
      max = hn::Max(max, hn::IfThenElse(missed, hn::Neg(infinity), x));
    } else {
      min = hn::Min(min, x);
      max = hn::Max(max, x);
    }
    sum = hn::Add(sum, w);
    second = hn::MulAdd(w, w, second);
  }

  HWY_INLINE void add_to(StripSums& sums, std::size_t lane) const {
    const Doubles d;
    hn::StoreU(hn::Add(hn::LoadU(d, sums.sum + lane), sum), d, sums.sum + lane);
    hn::StoreU(hn::Add(hn::LoadU(d, sums.second + lane), second), d, sums.second + lane);
    hn::StoreU(hn::Add(hn::LoadU(d, sums.missing + lane), missing), d, sums.missing + lane);
    hn::StoreU(hn::Min(hn::LoadU(d, sums.min + lane), min), d, sums.min + lane);
    hn::StoreU(hn::Max(hn::LoadU(d, sums.max + lane), max), d, sums.max + lane);
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

/// Adds two vectors' lanes of a tile to `sums`. With kMasked, NaN are skipped and counted; without, the return value
/// says whether one may have been met (`sums` is then left alone): a sum that is NaN tells, no element need be looked
/// at.
template <bool kMasked, bool kScaled, typename T>
HWY_INLINE bool tile_lanes(const StripRows<T>& rows, const StripMap& map, std::size_t lane, StripSums& sums) {
  const Doubles d;
  const std::size_t other = lane + hn::Lanes(d);
  const LaneMap<kScaled> map0(map, lane), map1(map, other);
  LaneSums sums0, sums1;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const T* const from = rows.data + i * rows.stride;
    if (lane == 0 && rows.next != nullptr) __builtin_prefetch(rows.next + 64 * i, 0, 2);
    const auto x0 = load_doubles(d, from + lane), x1 = load_doubles(d, from + other);
    sums0.template take<kMasked>(x0, map0(x0));
    sums1.template take<kMasked>(x1, map1(x1));
  }
  if (!kMasked && may_be_nan<T> && !hn::AllFalse(d, hn::Or(hn::IsNaN(sums0.sum), hn::IsNaN(sums1.sum)))) return true;
  sums0.add_to(sums, lane);
  sums1.add_to(sums, other);
  return false;
}

template <bool kScaled, typename T>
HWY_INLINE void add_lanes(const StripRows<T>& rows, const StripMap& map, std::size_t lane, StripSums& sums) {
  if (tile_lanes<false, kScaled>(rows, map, lane, sums)) tile_lanes<true, kScaled>(rows, map, lane, sums);
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
