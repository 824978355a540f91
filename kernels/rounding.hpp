#pragma once
// Doubles rounded to the factors of products, to nearest and ties to even, as IEEE 754 wants it: bodies for host and
// device. No CUDA header.
#include <cstdint>
#include <cstring>

#ifndef ROWMILL_HD
#ifdef __CUDACC__
#define ROWMILL_HD __host__ __device__
#else
#define ROWMILL_HD
#endif
#endif

namespace rowmill {

/// The bits of one type as another of the same size.
template <typename To, typename From>
ROWMILL_HD inline To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

/// w rounded to a binary format of `kBits` significant bits and normal exponents from kLeast to kMost (value 1.f ·
/// 2^exponent): a double that the format holds, infinities where it overflows. NaN stays NaN.
template <int kBits, int kLeast, int kMost>
ROWMILL_HD inline double rounded(double w) {
  const auto bits = same_bits<std::uint64_t>(w);
  const std::uint64_t sign = bits & 0x8000000000000000u;
  const std::uint64_t magnitude = bits ^ sign;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent == 1024) return w;
  if (exponent < kLeast) {
    // a multiple of the least subnormal: scaled to an integer, which the sum with 1.5 · 2^52 rounds
    constexpr double to_integer = 0x1.8p52;
    const auto quantum = same_bits<double>(static_cast<std::uint64_t>(kLeast - (kBits - 1) + 1023) << 52);
    const auto inverse = same_bits<double>(static_cast<std::uint64_t>(1023 - kLeast + (kBits - 1)) << 52);
    const double whole = (same_bits<double>(magnitude) * inverse + to_integer) - to_integer;
    return same_bits<double>(same_bits<std::uint64_t>(whole * quantum) | sign);
  }
  constexpr int dropped = 52 - (kBits - 1);
  const std::uint64_t odd = (magnitude >> dropped) & 1;
  const std::uint64_t up = magnitude + ((std::uint64_t{1} << (dropped - 1)) - 1 + odd);
  const std::uint64_t kept = up >> dropped << dropped;
  if (static_cast<int>(kept >> 52) - 1023 > kMost) return same_bits<double>(sign | 0x7ff0000000000000u);
  return same_bits<double>(kept | sign);
}

ROWMILL_HD inline double rounded_to_float(double w) {
  return static_cast<double>(static_cast<float>(w));
}
ROWMILL_HD inline double rounded_to_tf32(double w) {
  return rounded<11, -126, 127>(w);
}
ROWMILL_HD inline double rounded_to_bf16(double w) {
  return rounded<8, -126, 127>(w);
}
ROWMILL_HD inline double rounded_to_half(double w) {
  return rounded<11, -14, 15>(w);
}

/// The bits of a value that bfloat16 holds.
ROWMILL_HD inline std::uint16_t bf16_bits(double value) {
  return static_cast<std::uint16_t>(same_bits<std::uint32_t>(static_cast<float>(value)) >> 16);
}

/// The bits of a value that binary16 holds.
ROWMILL_HD inline std::uint16_t half_bits(double value) {
  const auto bits = same_bits<std::uint64_t>(value);
  const auto sign = static_cast<unsigned>(bits >> 48) & 0x8000u;
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  const auto fraction = static_cast<unsigned>(bits >> 42) & 1023u;
  unsigned magnitude = 0;
  if (exponent == 1024) {
    magnitude = (bits << 12) == 0 ? 0x7c00u : 0x7e00u;
  } else if (exponent >= -14) {
    magnitude = static_cast<unsigned>(exponent + 15) << 10 | fraction;
  } else {
    magnitude = static_cast<unsigned>(same_bits<double>(bits & 0x7fffffffffffffffu) * 0x1p24);
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

/// w as the sum of two bfloat16 and a rest of at most 2^-17 |w|.
struct TwoBf16 {
  double high, low;
};
ROWMILL_HD inline TwoBf16 split_bf16(double w) {
  const double high = rounded_to_bf16(w);
  return {high, rounded_to_bf16(w - high)};
}

}  // namespace rowmill
