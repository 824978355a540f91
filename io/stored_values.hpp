#pragma once
// Stored elements as C++ numbers.
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/dtype.hpp"

namespace rowmill {

/// Tags of stored types that C++ has no name for; their values are floats.
struct StoredHalf {};
struct StoredBFloat {};

/// binary16; exact. The exponent is moved by a product with 2^112, which is right for subnormals too.
inline float float_of_half_bits(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const std::uint32_t moved = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const std::uint32_t special = magnitude >= 0x0f800000U ? 0x7f800000U : 0U;
  return std::bit_cast<float>(moved | special | static_cast<std::uint32_t>(bits & 0x8000U) << 16);
}

template <typename Stored>
struct StoredAs {
  using Value = Stored;
  static constexpr std::size_t bytes = sizeof(Stored);
};
template <>
struct StoredAs<StoredHalf> {
  using Value = float;
  static constexpr std::size_t bytes = 2;
};
template <>
struct StoredAs<StoredBFloat> {
  using Value = float;
  static constexpr std::size_t bytes = 2;
};

/// Loads and stores elements of one stored type and byte order.
template <typename Stored, bool kSwapped>
struct StoredElement {
  using Value = typename StoredAs<Stored>::Value;
  static constexpr std::size_t bytes = StoredAs<Stored>::bytes;

  static std::array<std::byte, bytes> in_order(const std::byte* from) {
    std::array<std::byte, bytes> lying;
    std::memcpy(lying.data(), from, bytes);
    if constexpr (kSwapped) std::reverse(lying.begin(), lying.end());
    return lying;
  }
  static Value load(const std::byte* from) {
    if constexpr (std::is_same_v<Stored, StoredHalf>) {
      return float_of_half_bits(std::bit_cast<std::uint16_t>(in_order(from)));
    } else if constexpr (std::is_same_v<Stored, StoredBFloat>) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(std::bit_cast<std::uint16_t>(in_order(from))) << 16);
    } else {
      return std::bit_cast<Stored>(in_order(from));
    }
  }
  static void store(Value value, std::byte* to) requires std::is_arithmetic_v<Stored> {
    const auto lying = std::bit_cast<std::array<std::byte, bytes>>(value);
    const auto stored = in_order(lying.data());
    std::memcpy(to, stored.data(), bytes);
  }
};

/// Returns body(StoredElement<…>()) for a type that is known when the program runs.
template <typename Stored, typename Body>
auto with_stored_order(bool swapped, const Body& body) {
  return swapped ? body(StoredElement<Stored, true>()) : body(StoredElement<Stored, false>());
}
template <typename Body>
auto with_stored(ElementType type, const Body& body) {
  switch (type.dtype) {
    case DType::f16:
      return with_stored_order<StoredHalf>(type.swapped, body);
    case DType::bf16:
      return with_stored_order<StoredBFloat>(type.swapped, body);
    case DType::f32:
      return with_stored_order<float>(type.swapped, body);
    case DType::f64:
      return with_stored_order<double>(type.swapped, body);
    case DType::i8:
      return with_stored_order<std::int8_t>(false, body);
    case DType::i16:
      return with_stored_order<std::int16_t>(type.swapped, body);
    case DType::i32:
      return with_stored_order<std::int32_t>(type.swapped, body);
    case DType::i64:
      return with_stored_order<std::int64_t>(type.swapped, body);
    case DType::u8:
      return with_stored_order<std::uint8_t>(false, body);
    case DType::u16:
      return with_stored_order<std::uint16_t>(type.swapped, body);
    case DType::u32:
      return with_stored_order<std::uint32_t>(type.swapped, body);
    case DType::u64:
      break;
  }
  return with_stored_order<std::uint64_t>(type.swapped, body);
}

}  // namespace rowmill
