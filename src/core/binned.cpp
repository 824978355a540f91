#include "core/binned.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rowmill {

namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

constexpr std::uint64_t low32 = 0xffffffffu;

/// Three digits and the position of the highest of them.
struct Digits {
  std::int64_t digit[3];  ///< lowest position first
  int top;
};

/// Cuts a finite value. Within its three positions the value is the 96-bit integer m << shift, 12 <= shift <= 43, so
/// that its low 64 bits and its high 32 bits come from one shift each.
Digits cut(double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const int field = static_cast<int>(bits >> 52) & 0x7ff;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t m = field == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  const int p = std::max(field, 1) - 1;
  const int top = (p + 52) / 32;
  const int shift = p - 32 * (top - 2);
  const std::uint64_t low = m << shift;
  Digits digits{{static_cast<std::int64_t>(low & low32), static_cast<std::int64_t>(low >> 32),
                 static_cast<std::int64_t>(m >> (64 - shift))},
                top};
  if ((bits >> 63) != 0) {
    for (std::int64_t& digit : digits.digit) digit = -digit;
  }
  return digits;
}

/// Moves to the higher top position, dropping digits below.
Digits raised(const Digits& digits, int top) {
  Digits result{{0, 0, 0}, top};
  const int up = top - digits.top;
  for (int k = 0; k + up < 3; ++k) result.digit[k] = digits.digit[k + up];
  return result;
}

Digits load(BinnedView acc, std::int64_t i) {
  return {{acc.digit(0)[i], acc.digit(1)[i], acc.digit(2)[i]}, acc.top[i]};
}

void store(BinnedView acc, std::int64_t i, const Digits& digits) {
  for (int k = 0; k < 3; ++k) acc.digit(k)[i] = digits.digit[k];
  acc.top[i] = static_cast<std::int8_t>(digits.top);
}

Digits sum(const Digits& a, const Digits& b) {
  const int top = std::max(a.top, b.top);
  Digits result = raised(a, top);
  const Digits other = raised(b, top);
  for (int k = 0; k < 3; ++k) result.digit[k] += other.digit[k];
  return result;
}

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
  const Wide wide = exact(load(acc, i));
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
  if (std::isfinite(value)) {
    store(acc, i, sum(load(acc, i), cut(value)));
  } else {
    if (!(value < 0)) acc.positive()[i] = 1;
    if (!(value > 0)) acc.negative()[i] = 1;
  }
}

void binned_add_reference(BinnedView acc, const double* values) {
  for (std::int64_t i = 0; i < acc.count; ++i) binned_add_one(acc, i, values[i]);
}

void binned_align(BinnedView acc, const std::int8_t* tops) {
  for (std::int64_t i = 0; i < acc.count; ++i) {
    if (tops[i] > acc.top[i]) store(acc, i, raised(load(acc, i), tops[i]));
  }
}

void binned_merge(BinnedView acc, BinnedView other) {
  for (std::int64_t i = 0; i < acc.count; ++i) {
    store(acc, i, sum(load(acc, i), load(other, i)));
    acc.positive()[i] = std::max(acc.positive()[i], other.positive()[i]);
    acc.negative()[i] = std::max(acc.negative()[i], other.negative()[i]);
  }
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
