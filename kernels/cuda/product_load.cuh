#pragma once
// Elements of a block as doubles, in device code.
#include <cstdint>

#include "core/block.hpp"
#include "kernels/rounding.hpp"

namespace rowmill::cuda {

/// A block's rows and mask as kernels take them. Sparse rows have row_start and index, and data are their values.
struct StoredRows {
  const std::uint8_t* data = nullptr;
  const std::int64_t* row_start = nullptr;
  const std::int64_t* index = nullptr;
  const std::uint8_t* mask = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0, mask_stride = 0;
  DType dtype = DType::f64;
  bool swapped = false;
};

inline StoredRows stored_rows(const Block& block) {
  StoredRows out;
  if (const auto* dense = std::get_if<DenseRows>(&block.x)) {
    out.data = reinterpret_cast<const std::uint8_t*>(dense->data);
    out.stride = dense->stride;
  } else {
    const auto& sparse = std::get<CsrRows>(block.x);
    out.data = reinterpret_cast<const std::uint8_t*>(sparse.value);
    out.row_start = sparse.row_start;
    out.index = sparse.index;
  }
  const ElementType type = element_type(block.x);
  out.dtype = type.dtype;
  out.swapped = type.swapped;
  out.rows = row_count(block.x);
  out.columns = column_count(block.x);
  if (block.missing) {
    out.mask = block.missing->data;
    out.mask_stride = block.missing->stride;
  }
  return out;
}

__device__ inline double not_a_number() {
  return same_bits<double>(std::uint64_t{0x7ff8000000000000u});
}

/// binary16 by arithmetic: the exponent is moved by a product with 2^112, which is right for subnormals too.
__device__ inline double value_of_half(std::uint32_t bits) {
  const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
  const auto moved = same_bits<std::uint32_t>(same_bits<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return static_cast<double>(same_bits<float>(moved | special | (bits & 0x8000u) << 16));
}

template <int kBytes>
__device__ inline std::uint64_t in_our_order(std::uint64_t bits) {
  std::uint64_t reversed = 0;
  for (int i = 0; i < kBytes; ++i) reversed |= ((bits >> (8 * i)) & 255u) << (8 * (kBytes - 1 - i));
  return reversed;
}

/// An element by its bits, as they lie in memory, to the nearest double.
template <int kBytes>
__device__ inline double value_of(DType dtype, bool swapped, std::uint64_t bits) {
  if (kBytes > 1 && swapped) bits = in_our_order<kBytes>(bits);
  if constexpr (kBytes == 1) {
    return dtype == DType::u8 ? static_cast<double>(static_cast<std::uint8_t>(bits))
                              : static_cast<double>(static_cast<std::int8_t>(bits));
  } else if constexpr (kBytes == 2) {
    if (dtype == DType::f16) return value_of_half(static_cast<std::uint32_t>(bits));
    if (dtype == DType::bf16) return static_cast<double>(same_bits<float>(static_cast<std::uint32_t>(bits) << 16));
    return dtype == DType::u16 ? static_cast<double>(static_cast<std::uint16_t>(bits))
                               : static_cast<double>(static_cast<std::int16_t>(bits));
  } else if constexpr (kBytes == 4) {
    if (dtype == DType::f32) return static_cast<double>(same_bits<float>(static_cast<std::uint32_t>(bits)));
    return dtype == DType::u32 ? static_cast<double>(static_cast<std::uint32_t>(bits))
                               : static_cast<double>(static_cast<std::int32_t>(bits));
  } else {
    if (dtype == DType::f64) return same_bits<double>(bits);
    return dtype == DType::u64 ? static_cast<double>(bits) : static_cast<double>(static_cast<std::int64_t>(bits));
  }
}

/// Byte by byte: from any address.
template <int kBytes>
__device__ inline std::uint64_t bits_at(const std::uint8_t* from) {
  std::uint64_t bits = 0;
  for (int i = 0; i < kBytes; ++i) bits |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  return bits;
}

/// The element (row, column), mask apart; 0 where a sparse row holds none.
template <int kBytes>
__device__ inline double stored_value(const StoredRows& rows, std::int64_t row, std::int64_t column) {
  if (rows.index == nullptr) {
    return value_of<kBytes>(rows.dtype, rows.swapped,
                            bits_at<kBytes>(rows.data + (row * rows.stride + column) * kBytes));
  }
  std::int64_t low = rows.row_start[row], end = rows.row_start[row + 1];
  const std::int64_t row_end = end;
  while (low < end) {  // the first entry whose column is not less
    const std::int64_t middle = low + (end - low) / 2;
    if (rows.index[middle] < column) {
      low = middle + 1;
    } else {
      end = middle;
    }
  }
  if (low == row_end || rows.index[low] != column) return 0;
  return value_of<kBytes>(rows.dtype, rows.swapped, bits_at<kBytes>(rows.data + low * kBytes));
}

__device__ inline bool masked(const StoredRows& rows, std::int64_t row, std::int64_t column) {
  return rows.mask != nullptr && rows.mask[row * rows.mask_stride + column] != 0;
}

/// The same for any type, missing values as NaN.
__device__ inline double any_value(const StoredRows& rows, std::int64_t row, std::int64_t column) {
  if (masked(rows, row, column)) return not_a_number();
  switch (rows.dtype) {
    case DType::i8:
    case DType::u8:
      return stored_value<1>(rows, row, column);
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return stored_value<2>(rows, row, column);
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return stored_value<4>(rows, row, column);
    default:
      return stored_value<8>(rows, row, column);
  }
}

}  // namespace rowmill::cuda
