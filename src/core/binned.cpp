#include "core/binned.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/binned_body.hpp"

namespace rowmill {

namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

using binned::Digits;

/// ± magnitude · 2^exponent.
struct Wide {
  bool negative;
  UInt128 magnitude;
  int exponent;
};

/// The exact sum of digits. With at most 2^31 terms |digit| <= 2^63 - 2^31, and the sum stays below 2^127.
Wide exact(const Digits& digits) {
  Int128 value = digits.digit[2];
  value = value * (Int128{1} << 32) + digits.digit[1];
  value = value * (Int128{1} << 32) + digits.digit[0];
  const bool negative = value < 0;
  return {negative, static_cast<UInt128>(negative ? -value : value), 32 * (digits.top - 2) - 1074};
}

int bit_length(UInt128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  if (high != 0) return 128 - std::countl_zero(high);
  return 64 - std::countl_zero(static_cast<std::uint64_t>(value));
}

/// The magnitude's first 53 bits, rounded to nearest even, in place. Sums are multiples of 2^-1074, so that a result in
/// the subnormal range has no more than 52 bits, is exact here, and is not rounded a second time by ldexp.
UInt128 to_53_bits(UInt128 magnitude) {
  const int drop = bit_length(magnitude) - 53;
  if (drop <= 0) return magnitude;
  const UInt128 one = 1, half = one << (drop - 1), rest = magnitude & ((one << drop) - 1);
  UInt128 kept = magnitude >> drop;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  return kept << drop;
}

/// A magnitude of at most 53 significant bits as a double.
double scaled(bool negative, UInt128 magnitude, int exponent) {
  const int drop = std::max(bit_length(magnitude) - 53, 0);
  const double leading = static_cast<double>(static_cast<std::uint64_t>(magnitude >> drop));
  return std::ldexp(negative ? -leading : leading, exponent + drop);
}

/// What the lanes of infinities and NaN say; 0 if they are silent.
double special(BinnedView acc, std::int64_t i) {
  const bool positive = acc.positive()[i] != 0, negative = acc.negative()[i] != 0;
  if (positive && negative) return std::numeric_limits<double>::quiet_NaN();
  if (positive) return std::numeric_limits<double>::infinity();
  return negative ? -std::numeric_limits<double>::infinity() : 0.0;
}

void round_one(BinnedView acc, std::int64_t i, double& hi, double& lo) {
  lo = 0.0;
  hi = special(acc, i);
  if (hi != 0.0) return;  // NaN as well
  const Wide wide = exact(binned::load(acc, i));
  const UInt128 rounded = to_53_bits(wide.magnitude);
  hi = scaled(wide.negative, rounded, wide.exponent);
  if (!std::isfinite(hi)) return;
  const bool below = rounded > wide.magnitude;
  const UInt128 rest = below ? rounded - wide.magnitude : wide.magnitude - rounded;
  lo = scaled(wide.negative != below, to_53_bits(rest), wide.exponent);
}

}  // namespace

std::size_t binned_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * (3 * sizeof(std::int64_t) + 3 * sizeof(std::int8_t));
}

BinnedView binned_view(void* memory, std::int64_t count) {
  auto* digits = static_cast<std::int64_t*>(memory);
  return {digits, reinterpret_cast<std::int8_t*>(digits + 3 * count), count};
}

void binned_add_one(BinnedView acc, std::int64_t i, double value) {
  binned::add(acc, i, value);
}

void binned_add_reference(BinnedView acc, const double* values) {
  for (std::int64_t i = 0; i < acc.count; ++i) binned_add_one(acc, i, values[i]);
}

void binned_align(BinnedView acc, const std::int8_t* tops) {
  for (std::int64_t i = 0; i < acc.count; ++i) binned::align(acc, i, tops[i]);
}

void binned_merge(BinnedView acc, BinnedView other) {
  for (std::int64_t i = 0; i < acc.count; ++i) binned::merge(acc, other, i);
}

void binned_round(BinnedView acc, std::span<double> out) {
  double rest = 0;
  for (std::int64_t i = 0; i < acc.count; ++i) round_one(acc, i, out[static_cast<std::size_t>(i)], rest);
}

void binned_round2(BinnedView acc, std::span<double> hi, std::span<double> lo) {
  for (std::int64_t i = 0; i < acc.count; ++i) {
    round_one(acc, i, hi[static_cast<std::size_t>(i)], lo[static_cast<std::size_t>(i)]);
  }
}

}  // namespace rowmill
