#include "io/widen.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "io/stored_values.hpp"

namespace rowmill {

namespace {

bool is_unsigned(DType type) {
  return type == DType::u8 || type == DType::u16 || type == DType::u32 || type == DType::u64;
}

/// Bits of an integer's magnitude.
std::size_t magnitude_bits(DType integer) {
  return 8 * size_of(integer) - (is_unsigned(integer) ? 0 : 1);
}

bool holds(DType wide, DType type) {
  if (wide == type) return true;
  if (is_integer(wide)) {
    return is_integer(type) && (is_unsigned(type) || !is_unsigned(wide)) &&
           magnitude_bits(wide) >= magnitude_bits(type);
  }
  const std::size_t significand = wide == DType::f64 ? 53 : 24;
  if (is_integer(type)) return magnitude_bits(type) <= significand;
  return size_of(type) < size_of(wide);
}

template <typename From, typename To>
void convert_all(const std::byte* from, std::int64_t count, std::byte* to) {
  using Value = typename To::Value;
  for (std::int64_t i = 0; i < count; ++i, from += From::bytes, to += To::bytes) {
    To::store(static_cast<Value>(From::load(from)), to);
  }
}

/// Only types that common_type() gives for two different ones.
template <typename From>
void convert_from(const std::byte* from, std::int64_t count, std::byte* to, DType wide) {
  const auto as = [&](auto stored) { convert_all<From, StoredElement<decltype(stored), false>>(from, count, to); };
  switch (wide) {
    case DType::f32:
      return as(float());
    case DType::f64:
      return as(double());
    default:
      break;
  }
  if constexpr (std::is_integral_v<typename From::Value>) {
    switch (wide) {
      case DType::i8:
        return as(std::int8_t());
      case DType::i16:
        return as(std::int16_t());
      case DType::i32:
        return as(std::int32_t());
      case DType::i64:
        return as(std::int64_t());
      case DType::u8:
        return as(std::uint8_t());
      case DType::u16:
        return as(std::uint16_t());
      case DType::u32:
        return as(std::uint32_t());
      case DType::u64:
        return as(std::uint64_t());
      default:
        break;
    }
  }
  throw std::invalid_argument("a type that does not hold the values of another");
}

void swap_bytes(const std::byte* from, std::int64_t count, std::byte* to, std::size_t width) {
  for (std::int64_t i = 0; i < count; ++i, from += width, to += width) std::reverse_copy(from, from + width, to);
}

}  // namespace

std::optional<ElementType> common_type(std::span<const ElementType> types) {
  const auto all = [&](const auto& is_true) { return std::all_of(types.begin(), types.end(), is_true); };
  if (all([&](ElementType type) { return type.dtype == types[0].dtype; })) {
    return ElementType{types[0].dtype, all([](ElementType type) { return type.swapped; })};
  }
  // the two halves hold little of each other and nothing is converted to them
  for (const DType wide :
       {DType::i16, DType::u16, DType::i32, DType::u32, DType::f32, DType::i64, DType::u64, DType::f64}) {
    if (all([&](ElementType type) { return holds(wide, type.dtype); })) return ElementType{wide, false};
  }
  return {};
}

void convert_elements(const std::byte* from, ElementType type, std::int64_t count, std::byte* to, ElementType wide) {
  if (type == wide) {
    std::copy_n(from, static_cast<std::size_t>(count) * size_of(type), to);
  } else if (type.dtype == wide.dtype) {
    swap_bytes(from, count, to, size_of(type));
  } else {
    with_stored(type, [&](auto element) { convert_from<decltype(element)>(from, count, to, wide.dtype); });
  }
}

}  // namespace rowmill
