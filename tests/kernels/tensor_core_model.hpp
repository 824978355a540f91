#pragma once
// Tensor cores as plain arithmetic: how groups of products are added to an fp32 accumulator. After Khattak and Mikaitis
// (arXiv:2512.07004): products and accumulator are aligned to the greatest exponent, cut toward zero below `extra_bits`
// bits past 24, added exactly, and the sum is cut to 24 bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/precision.hpp"

namespace rowmill::test {

inline double cut_to_24_bits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double ulp = std::ldexp(1.0, std::ilogb(value) - 23);
  return std::trunc(value / ulp) * ulp;
}

/// accumulator + Σ a[i * step_a] b[i * step_b] over `count` products of one group; a and b as doubles.
template <typename A, typename B>
double add_group(const TensorCore& core, double accumulator, const A& a, const B& b, std::int64_t first,
                 std::int64_t count) {
  int greatest = accumulator == 0 ? std::numeric_limits<int>::min() : std::ilogb(accumulator);
  bool finite = std::isfinite(accumulator);
  for (std::int64_t i = first; i < first + count; ++i) {
    const double x = a(i), y = b(i);
    finite = finite && std::isfinite(x) && std::isfinite(y);
    if (x != 0 && y != 0 && finite) greatest = std::max(greatest, std::ilogb(x) + std::ilogb(y));
  }
  double sum = 0;
  if (!finite) {
    for (std::int64_t i = first; i < first + count; ++i) sum += a(i) * b(i);
    return accumulator + sum;
  }
  if (greatest == std::numeric_limits<int>::min()) return 0;
  const double quantum = std::ldexp(1.0, greatest - 23 - core.extra_bits);
  sum = std::trunc(accumulator / quantum);  // integers below 2^32: their sum is exact
  for (std::int64_t i = first; i < first + count; ++i) sum += std::trunc(a(i) * b(i) / quantum);
  return cut_to_24_bits(sum * quantum);
}

/// One chain of n products, from an accumulator of zero.
template <typename A, typename B>
double chain(const TensorCore& core, const A& a, const B& b, std::int64_t n) {
  double accumulator = 0;
  for (std::int64_t i = 0; i < n; i += core.group) {
    accumulator = add_group(core, accumulator, a, b, i, std::min<std::int64_t>(core.group, n - i));
  }
  return accumulator;
}

}  // namespace rowmill::test
