#pragma once
// One stored element as a number, by the plainest means.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/dtype.hpp"

namespace rowmill::test {

template <typename T>
T from_bytes(const std::array<std::byte, 8>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// IEEE binary16 by its definition.
inline double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

/// Exact: a long double (x87) holds every element type.
inline long double element_value(const std::byte* at, ElementType type) {
  std::array<std::byte, 8> bytes = {};
  const std::size_t size = size_of(type);
  std::memcpy(bytes.data(), at, size);
  if (type.swapped) std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  switch (type.dtype) {
    case DType::f16:
      return half_value(from_bytes<std::uint16_t>(bytes));
    case DType::bf16: {
      const std::uint32_t bits = static_cast<std::uint32_t>(from_bytes<std::uint16_t>(bytes)) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case DType::f32:
      return from_bytes<float>(bytes);
    case DType::f64:
      return from_bytes<double>(bytes);
    case DType::i8:
      return from_bytes<std::int8_t>(bytes);
    case DType::i16:
      return from_bytes<std::int16_t>(bytes);
    case DType::i32:
      return from_bytes<std::int32_t>(bytes);
    case DType::i64:
      return static_cast<long double>(from_bytes<std::int64_t>(bytes));
    case DType::u8:
      return from_bytes<std::uint8_t>(bytes);
    case DType::u16:
      return from_bytes<std::uint16_t>(bytes);
    case DType::u32:
      return from_bytes<std::uint32_t>(bytes);
    case DType::u64:
      return static_cast<long double>(from_bytes<std::uint64_t>(bytes));
  }
  return 0;
}

}  // namespace rowmill::test
