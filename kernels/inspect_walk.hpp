#pragma once
// What inspect does on a GPU, as bodies of one thread each. A place is row * columns + column, counted from the block's
// first row; thread `index` of `threads` looks at every threads-th vector or element in order, so that the first place
// it finds is its smallest.
#include <cstdint>

#include "core/host_device.hpp"
#include "kernels/column_walk.hpp"
#include "kernels/functors.hpp"

namespace rowmill::functors {

/// Rows without gaps that begin at a multiple of a vector's bytes are read in vectors.
inline bool inspects_in_vectors(const AnyRows& rows) {
  return rows.row_start == nullptr && (rows.stride == rows.columns || rows.rows == 1) &&
         reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0;
}

/// The first special element (see Element::is_special), or nothing_missing.
template <typename E>
ROWMILL_HD inline std::int64_t special_in_vectors(const AnyRows& rows, std::int64_t index, std::int64_t threads) {
  constexpr int lanes = vector_elements<E>;
  const std::int64_t elements = rows.rows * rows.columns, vectors = elements / lanes;
  constexpr auto bytes = static_cast<std::int64_t>(E::bytes);
  ROWMILL_UNROLL_4
  for (std::int64_t i = index; i < vectors; i += threads) {
    const auto vector = ElementVector<E, lanes>::load(rows.data + i * lanes * bytes);
    ROWMILL_UNROLL
    for (int lane = 0; lane < lanes; ++lane) {
      if (E::is_special(vector.bits[lane])) return i * lanes + lane;
    }
  }
  for (std::int64_t i = vectors * lanes + index; i < elements; i += threads) {
    if (E::is_special(E::load(rows.data + i * bytes))) return i;
  }
  return nothing_missing;
}

struct IsSpecial {
  const std::byte* from;
  template <typename E>
  ROWMILL_HD bool operator()(E) const {
    return E::is_special(E::load(from));
  }
};

/// The row that holds entry `entry` of sparse rows: the last that begins at or before it.
ROWMILL_HD inline std::int64_t row_of_entry(const AnyRows& rows, std::int64_t entry) {
  std::int64_t first = 0, end = rows.rows;
  while (end - first > 1) {
    const std::int64_t middle = first + (end - first) / 2;
    if (rows.row_start[middle] <= entry) {
      first = middle;
    } else {
      end = middle;
    }
  }
  return first;
}

/// The same for rows of any layout, an element at a time.
ROWMILL_HD inline std::int64_t special_in_elements(const AnyRows& rows, std::int64_t index, std::int64_t threads) {
  const bool sparse = rows.row_start != nullptr;
  const std::int64_t elements = sparse ? rows.row_start[rows.rows] : rows.rows * rows.columns;
  for (std::int64_t i = index; i < elements; i += threads) {
    const std::int64_t at = sparse ? i : i / rows.columns * rows.stride + i % rows.columns;
    if (!with_element(rows.type, IsSpecial{rows.data + at * rows.element_bytes})) continue;
    return sparse ? row_of_entry(rows, i) * rows.columns + rows.index[i] : i;
  }
  return nothing_missing;
}

/// The first place that is set in the mask, or nothing_missing.
ROWMILL_HD inline std::int64_t first_in_mask(const AnyRows& rows, std::int64_t index, std::int64_t threads) {
  constexpr std::int64_t word = 8;
  const std::int64_t elements = rows.rows * rows.columns;
  const bool words = (rows.mask_stride == rows.columns || rows.rows == 1) &&
                     reinterpret_cast<std::uintptr_t>(rows.mask) % static_cast<std::uint64_t>(word) == 0;
  const std::int64_t whole = words ? elements / word : 0;
  for (std::int64_t i = index; i < whole; i += threads) {
    std::uint64_t bits;
    std::memcpy(&bits, __builtin_assume_aligned(rows.mask + i * word, 8), sizeof bits);
    if (bits == 0) continue;
    // the lowest byte lies first on every machine that CUDA runs on
    std::int64_t place = i * word;
    for (; (bits & 0xff) == 0; bits >>= 8) ++place;
    return place;
  }
  for (std::int64_t i = whole * word + index; i < elements; i += threads) {
    if (rows.mask[i / rows.columns * rows.mask_stride + i % rows.columns] != 0) return i;
  }
  return nothing_missing;
}

}  // namespace rowmill::functors
