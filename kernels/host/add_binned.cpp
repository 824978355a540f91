#include <cstdint>

#include "kernels/host/kernels.hpp"
#include "kernels/host/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/add_binned.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// The cutting of core/binned.cpp, a vector of accumulators at a time. Infinities and NaN are rare and take
// the slow way.
HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Integers = hn::ScalableTag<std::int64_t>;
using IntegerVector = hn::Vec<Integers>;

struct Cut {
  IntegerVector digit[3];  ///< magnitudes, lowest position first
  IntegerVector top;
  IntegerVector sign;  ///< all ones where negative
  hn::Mask<Integers> finite;
};

HWY_INLINE Cut cut(const double* values) {
  const Integers d;
  const hn::RebindToUnsigned<Integers> du;
  const auto bits = hn::LoadU(du, reinterpret_cast<const std::uint64_t*>(values));
  const auto field = hn::And(hn::ShiftRight<52>(bits), hn::Set(du, 0x7ff));
  const auto hidden = hn::Set(du, std::uint64_t{1} << 52);
  const auto fraction = hn::And(bits, hn::Set(du, (std::uint64_t{1} << 52) - 1));
  const auto subnormal = hn::Eq(field, hn::Zero(du));
  const auto m = hn::Or(fraction, hn::IfThenZeroElse(subnormal, hidden));
  const auto p = hn::IfThenZeroElse(subnormal, hn::Sub(field, hn::Set(du, 1)));
  const auto top = hn::ShiftRight<5>(hn::Add(p, hn::Set(du, 52)));
  const auto shift = hn::Sub(hn::Add(p, hn::Set(du, 64)), hn::ShiftLeft<5>(top));
  const auto low = hn::Shl(m, shift);
  const auto d0 = hn::And(low, hn::Set(du, 0xffffffffu));
  const auto d1 = hn::ShiftRight<32>(low);
  const auto d2 = hn::Shr(m, hn::Sub(hn::Set(du, 64), shift));
  return {{hn::BitCast(d, d0), hn::BitCast(d, d1), hn::BitCast(d, d2)},
          hn::BitCast(d, top),
          hn::BroadcastSignBit(hn::BitCast(d, bits)),
          hn::Ne(hn::BitCast(d, field), hn::Set(d, 0x7ff))};
}

HWY_INLINE IntegerVector load_tops(const std::int8_t* tops) {
  const Integers d;
  const hn::Rebind<std::int32_t, Integers> d32;
  return hn::PromoteTo(d, hn::PromoteTo(d32, hn::LoadU(hn::Rebind<std::int8_t, Integers>(), tops)));
}

HWY_INLINE void add_digit(std::int64_t* acc, IntegerVector digit, IntegerVector sign) {
  const Integers d;
  hn::StoreU(hn::Add(hn::LoadU(d, acc), hn::Sub(hn::Xor(digit, sign), sign)), d, acc);
}

/// Three digits moved down by so many positions; what leaves at the bottom is dropped.
HWY_INLINE void move_down(IntegerVector by, IntegerVector* digit) {
  const Integers d;
  const auto none = hn::Eq(by, hn::Zero(d)), one = hn::Eq(by, hn::Set(d, 1)), two = hn::Eq(by, hn::Set(d, 2));
  digit[0] = hn::IfThenElse(none, digit[0], hn::IfThenElse(one, digit[1], hn::IfThenElseZero(two, digit[2])));
  digit[1] = hn::IfThenElse(none, digit[1], hn::IfThenElseZero(one, digit[2]));
  digit[2] = hn::IfThenElseZero(none, digit[2]);
}

/// Raises accumulators to the top positions `tops` where those are higher.
HWY_NOINLINE void raise(BinnedView acc, std::int64_t i, IntegerVector tops) {
  const Integers d;
  const auto old_tops = load_tops(acc.top + i), new_tops = hn::Max(old_tops, tops);
  IntegerVector digit[3];
  for (int k = 0; k < 3; ++k) digit[k] = hn::LoadU(d, acc.digit(k) + i);
  move_down(hn::Sub(new_tops, old_tops), digit);
  for (int k = 0; k < 3; ++k) hn::StoreU(digit[k], d, acc.digit(k) + i);
  HWY_ALIGN std::int64_t raised[hn::MaxLanes(Integers())];
  hn::Store(new_tops, d, raised);
  for (std::size_t k = 0; k < hn::Lanes(d); ++k)
    acc.top[i + static_cast<std::int64_t>(k)] = static_cast<std::int8_t>(raised[k]);
}

/// Adds one vector to accumulators i on, or says that it holds infinities or NaN.
HWY_INLINE bool add_vector(BinnedView acc, const double* values, std::int64_t i) {
  const Integers d;
  Cut term = cut(values);
  if (!hn::AllTrue(d, term.finite)) return false;
  auto below = hn::Sub(load_tops(acc.top + i), term.top);
  const auto zero = hn::Zero(d);
  if (!hn::AllTrue(d, hn::Eq(below, zero))) {
    if (!hn::AllTrue(d, hn::Gt(below, hn::Set(d, -1)))) {
      raise(acc, i, term.top);
      below = hn::Max(below, zero);
    }
    move_down(below, term.digit);
  }
  for (int k = 0; k < 3; ++k) add_digit(acc.digit(k) + i, term.digit[k], term.sign);
  return true;
}

void add_run(BinnedView acc, std::int64_t first, const double* values, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Integers()));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    if (add_vector(acc, values + i, first + i)) continue;
    for (std::int64_t k = i; k < i + lanes; ++k) binned_add_one(acc, first + k, values[k]);
  }
  for (; i < count; ++i) binned_add_one(acc, first + i, values[i]);
}

}  // namespace
}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowmill::host {

HWY_EXPORT(add_run);

void add_binned(BinnedView acc, const double* values) {
  add_binned(acc, 0, values, acc.count);
}

void add_binned(BinnedView acc, std::int64_t first, const double* values, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(add_run)(acc, first, values, count);
}

}  // namespace rowmill::host
#endif
