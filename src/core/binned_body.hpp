#pragma once
// What binned sums do with one term or one accumulator: the bodies behind core/binned.hpp, shared with CUDA kernels.
#include <cstdint>
#include <cstring>

#include "core/binned.hpp"
#include "core/host_device.hpp"

namespace rowmill::binned {

/// Three digits and the position of the highest of them.
struct Digits {
  std::int64_t digit[3];  ///< lowest position first
  int top;
};

constexpr std::uint64_t low32 = 0xffffffffu;

ROWMILL_HD inline std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

ROWMILL_HD inline bool is_finite(double value) {
  return (bits_of(value) >> 52 & 0x7ff) != 0x7ff;
}

/// Cuts a finite value. Within its three positions the value is the 96-bit integer m << shift, 12 <= shift <= 43, so
/// that its low 64 bits and its high 32 bits come from one shift each.
ROWMILL_HD inline Digits cut(double value) {
  const std::uint64_t bits = bits_of(value);
  const int field = static_cast<int>(bits >> 52) & 0x7ff;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t m = field == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  const int p = (field > 1 ? field : 1) - 1;
  const int top = (p + 52) / 32;
  const int shift = p - 32 * (top - 2);
  const std::uint64_t low = m << shift;
  const std::int64_t sign = (bits >> 63) != 0 ? -1 : 1;
  return {{sign * static_cast<std::int64_t>(low & low32), sign * static_cast<std::int64_t>(low >> 32),
           sign * static_cast<std::int64_t>(m >> (64 - shift))},
          top};
}

/// Moves to the top position `top` >= digits.top, dropping digits below. No index that is computed: a GPU keeps the
/// digits in registers.
ROWMILL_HD inline Digits raised(const Digits& digits, int top) {
  const int up = top - digits.top;
  const std::int64_t d0 = digits.digit[0], d1 = digits.digit[1], d2 = digits.digit[2];
  return {{up == 0 ? d0 : up == 1 ? d1 : up == 2 ? d2 : 0, up == 0 ? d1 : up == 1 ? d2 : 0, up == 0 ? d2 : 0}, top};
}

ROWMILL_HD inline Digits sum(const Digits& a, const Digits& b) {
  const int top = a.top > b.top ? a.top : b.top;
  Digits result = raised(a, top);
  const Digits other = raised(b, top);
  ROWMILL_UNROLL
  for (int k = 0; k < 3; ++k) result.digit[k] += other.digit[k];
  return result;
}

ROWMILL_HD inline Digits load(const BinnedView& acc, std::int64_t i) {
  return {{acc.digit(0)[i], acc.digit(1)[i], acc.digit(2)[i]}, acc.top[i]};
}

ROWMILL_HD inline void store(const BinnedView& acc, std::int64_t i, const Digits& digits) {
  ROWMILL_UNROLL
  for (int k = 0; k < 3; ++k) acc.digit(k)[i] = digits.digit[k];
  acc.top[i] = static_cast<std::int8_t>(digits.top);
}

/// acc[i] += value.
ROWMILL_HD inline void add(const BinnedView& acc, std::int64_t i, double value) {
  if (is_finite(value)) {
    store(acc, i, sum(load(acc, i), cut(value)));
  } else {
    if (!(value < 0)) acc.positive()[i] = 1;
    if (!(value > 0)) acc.negative()[i] = 1;
  }
}

/// acc[i] += other[i].
ROWMILL_HD inline void merge(const BinnedView& acc, const BinnedView& other, std::int64_t i) {
  store(acc, i, sum(load(acc, i), load(other, i)));
  if (other.positive()[i] > acc.positive()[i]) acc.positive()[i] = other.positive()[i];
  if (other.negative()[i] > acc.negative()[i]) acc.negative()[i] = other.negative()[i];
}

/// Brings acc[i] to the top position `top`, if that is higher.
ROWMILL_HD inline void align(const BinnedView& acc, std::int64_t i, std::int8_t top) {
  if (top > acc.top[i]) store(acc, i, raised(load(acc, i), top));
}

}  // namespace rowmill::binned
