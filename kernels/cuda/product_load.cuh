#pragma once
// Elements of a block as doubles, where the size of an element is known when the code is compiled: one kernel a size,
// not one a type.
#include <cstdint>

#include "kernels/functors.hpp"

namespace rowmill::cuda {

using functors::AnyRows;
template <int kBytes>
using BitsOf = functors::BitsOf<static_cast<std::size_t>(kBytes)>;

/// An element by its bits, as they lie in memory, to the nearest double.
template <int kBytes>
__device__ inline double value_of(ElementType type, BitsOf<kBytes> lying) {
  const BitsOf<kBytes> bits = type.swapped ? functors::swapped_bytes(lying) : lying;
  if constexpr (kBytes == 1) {
    return type.dtype == DType::u8 ? static_cast<double>(bits)
                                   : static_cast<double>(functors::bits_as<std::int8_t>(bits));
  } else if constexpr (kBytes == 2) {
    if (type.dtype == DType::f16) return static_cast<double>(functors::float_of_half(bits));
    if (type.dtype == DType::bf16) {
      return static_cast<double>(functors::bits_as<float>(static_cast<std::uint32_t>(bits) << 16));
    }
    return type.dtype == DType::u16 ? static_cast<double>(bits)
                                    : static_cast<double>(functors::bits_as<std::int16_t>(bits));
  } else if constexpr (kBytes == 4) {
    if (type.dtype == DType::f32) return static_cast<double>(functors::bits_as<float>(bits));
    return type.dtype == DType::u32 ? static_cast<double>(bits)
                                    : static_cast<double>(functors::bits_as<std::int32_t>(bits));
  } else {
    if (type.dtype == DType::f64) return functors::bits_as<double>(bits);
    return type.dtype == DType::u64 ? static_cast<double>(bits)
                                    : static_cast<double>(functors::bits_as<std::int64_t>(bits));
  }
}

/// The element (row, column), mask apart; 0 where a sparse row holds none.
template <int kBytes>
__device__ inline double stored_value(const AnyRows& rows, std::int64_t row, std::int64_t column) {
  const std::int64_t at =
      rows.row_start == nullptr ? row * rows.stride + column : functors::find_entry(rows, row, column);
  if (at < 0) return 0;
  return value_of<kBytes>(rows.type, *reinterpret_cast<const BitsOf<kBytes>*>(rows.data + at * kBytes));
}

__device__ inline bool masked(const AnyRows& rows, std::int64_t row, std::int64_t column) {
  return rows.mask != nullptr && rows.mask[row * rows.mask_stride + column] != 0;
}

}  // namespace rowmill::cuda
