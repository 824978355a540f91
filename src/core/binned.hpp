#pragma once
// Order-free sums. Each term is cut exactly into digits of 32 bits on an absolute grid of exponents, and digits are
// added as integers: the sum does not depend on the order of its terms nor on how they were grouped.
//
// Cutting: a finite double is ± m · 2^(p - 1074) with 0 <= m < 2^53 and p = max(exponent field, 1) - 1. Its top digit
// has position t = (p + 52) / 32. An accumulator keeps the greatest t of its terms and the three digits at positions t,
// t - 1, t - 2 (position q has the weight 2^(32 q - 1074)); a term's 53 bits span no more than three positions, so that
// a term with the greatest t is kept whole. Digits of a term that lie below are dropped, that is, each term is
// truncated toward zero by less than 2^(32 (t - 2) - 1074), which is 2^-64 or less of the largest term. A digit of a
// term depends on that term alone and no carry moves between positions, so what is kept at the end is the same in any
// order. |digit| < 2^32, so an int64 holds 2^31 terms. After Demmel and Nguyen, "Fast Reproducible Floating-Point
// Summation", ARITH 21 (2013), with integer digits.
//
// Infinities and NaN: +inf sets `positive`, -inf sets `negative`, NaN sets both; both set means NaN.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/host_device.hpp"

namespace rowmill {

/// View of `count` accumulators. `digits` holds three arrays of `count` (lowest position first), `top`, `positive`,
/// `negative` one of `count` each, directly behind one another (so that one MAX combines the three).
struct BinnedView {
  std::int64_t* digits = nullptr;
  std::int8_t* top = nullptr;
  std::int64_t count = 0;

  ROWMILL_HD std::int64_t* digit(int k) const { return digits + k * count; }
  ROWMILL_HD std::int8_t* positive() const { return top + count; }
  ROWMILL_HD std::int8_t* negative() const { return top + 2 * count; }
};

/// Bytes of `count` accumulators; the view of them at `memory` (64-byte aligned; all zero bytes is the sum of nothing).
std::size_t binned_bytes(std::int64_t count);
BinnedView binned_view(void* memory, std::int64_t count);

/// acc[i] += value for one i.
void binned_add_one(BinnedView acc, std::int64_t i, double value);

/// acc[i] += values[i], portable and slow: what the fast kernels are tested against.
void binned_add_reference(BinnedView acc, const double* values);

/// Brings every accumulator to the top position tops[i] >= acc.top[i] (dropping digits below).
void binned_align(BinnedView acc, const std::int8_t* tops);

/// acc += other, element by element.
void binned_merge(BinnedView acc, BinnedView other);

/// The sums, each rounded to the nearest double once (overflow gives an infinity).
void binned_round(BinnedView acc, std::span<double> out);

/// As binned_round, into an unevaluated sum of two doubles (hi is the rounded sum, lo what is left).
void binned_round2(BinnedView acc, std::span<double> hi, std::span<double> lo);

}  // namespace rowmill
