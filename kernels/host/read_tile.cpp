#include "kernels/host/read_tile.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/host/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/read_tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
namespace {

/// Plain loops, which the compiler turns into vector code for each target.
template <typename Bits, bool kSwapped>
HWY_INLINE Bits load_bits(const std::byte* from) {
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  if constexpr (kSwapped && sizeof(Bits) == 2) bits = __builtin_bswap16(bits);
  if constexpr (kSwapped && sizeof(Bits) == 4) bits = __builtin_bswap32(bits);
  if constexpr (kSwapped && sizeof(Bits) == 8) bits = __builtin_bswap64(bits);
  return bits;
}

struct Half {};
struct BFloat {};

/// binary16 by arithmetic: the exponent is moved by a product with 2^112, which is right for subnormals too.
HWY_INLINE float float_of_half(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const std::uint32_t moved = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(moved | special | static_cast<std::uint32_t>(bits & 0x8000u) << 16);
}

template <typename Stored, bool kSwapped>
void convert(const std::byte* from, std::int64_t count, double* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Stored, Half>) {
      to[i] = static_cast<double>(float_of_half(load_bits<std::uint16_t, kSwapped>(from + 2 * i)));
    } else if constexpr (std::is_same_v<Stored, BFloat>) {
      const std::uint32_t bits = load_bits<std::uint16_t, kSwapped>(from + 2 * i);
      to[i] = static_cast<double>(std::bit_cast<float>(bits << 16));
    } else {
      using Bits =
          std::conditional_t<sizeof(Stored) == 1, std::uint8_t,
                             std::conditional_t<sizeof(Stored) == 2, std::uint16_t,
                                                std::conditional_t<sizeof(Stored) == 4, std::uint32_t, std::uint64_t>>>;
      const auto bits = load_bits<Bits, kSwapped>(from + static_cast<std::int64_t>(sizeof(Stored)) * i);
      to[i] = static_cast<double>(std::bit_cast<Stored>(bits));
    }
  }
}

using Converter = void (*)(const std::byte*, std::int64_t, double*);

template <typename Stored>
Converter either_order(bool swapped) {
  return swapped ? &convert<Stored, true> : &convert<Stored, false>;
}

Converter converter_of(ElementType type) {
  switch (type.dtype) {
    case DType::f16:
      return either_order<Half>(type.swapped);
    case DType::bf16:
      return either_order<BFloat>(type.swapped);
    case DType::f32:
      return either_order<float>(type.swapped);
    case DType::f64:
      return either_order<double>(type.swapped);
    case DType::i8:
      return &convert<std::int8_t, false>;
    case DType::i16:
      return either_order<std::int16_t>(type.swapped);
    case DType::i32:
      return either_order<std::int32_t>(type.swapped);
    case DType::i64:
      return either_order<std::int64_t>(type.swapped);
    case DType::u8:
      return &convert<std::uint8_t, false>;
    case DType::u16:
      return either_order<std::uint16_t>(type.swapped);
    case DType::u32:
      return either_order<std::uint32_t>(type.swapped);
    case DType::u64:
      return either_order<std::uint64_t>(type.swapped);
  }
  return nullptr;
}

void read_dense(const DenseRows& rows, const Tile& tile, double* to, std::int64_t stride) {
  const Converter converter = converter_of(rows.type);
  const auto bytes = static_cast<std::int64_t>(size_of(rows.type));
  const std::byte* from = rows.data + (tile.first_row * rows.stride + tile.first_column) * bytes;
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    converter(from + i * rows.stride * bytes, tile.columns, to + i * stride);
  }
}

void read_sparse(const CsrRows& rows, const Tile& tile, double* to, std::int64_t stride) {
  const Converter converter = converter_of(rows.type);
  const auto bytes = static_cast<std::int64_t>(size_of(rows.type));
  const std::int64_t end_column = tile.first_column + tile.columns;
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    double* const line = to + i * stride;
    std::fill_n(line, tile.columns, 0.0);
    const std::int64_t* const first = rows.index + rows.row_start[tile.first_row + i];
    const std::int64_t* const end = rows.index + rows.row_start[tile.first_row + i + 1];
    const std::int64_t* entry = std::lower_bound(first, end, tile.first_column);
    while (entry != end && *entry < end_column) {
      double values[64];
      const std::int64_t count = std::min<std::int64_t>(end - entry, 64);
      converter(rows.value + (entry - rows.index) * bytes, count, values);
      for (std::int64_t k = 0; k < count && entry != end && *entry < end_column; ++k, ++entry) {
        line[*entry - tile.first_column] = values[k];
      }
    }
  }
}

}  // namespace
}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowmill::host {

HWY_EXPORT(read_dense);
HWY_EXPORT(read_sparse);

void read_tile(const Block& block, const Tile& tile, double* to, std::int64_t stride) {
  if (const auto* dense = std::get_if<DenseRows>(&block.x)) {
    HWY_DYNAMIC_DISPATCH(read_dense)(*dense, tile, to, stride);
  } else {
    HWY_DYNAMIC_DISPATCH(read_sparse)(std::get<CsrRows>(block.x), tile, to, stride);
  }
  if (!block.missing) return;
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    const std::uint8_t* const mask = block.missing->row(tile.first_row + i) + tile.first_column;
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      if (mask[j] != 0) to[i * stride + j] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

}  // namespace rowmill::host
#endif
