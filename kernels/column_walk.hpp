#pragma once
// The walk over a block that column_moments and nearest_values make on a GPU, as bodies of one thread each.
//
// Row r belongs to group r mod `groups`. A chain is a group's rows of one column, taken in order by one thread; the
// parts of all chains lie in scratch, groups × columns. Then each column's parts are gathered by `gatherers` threads
// (thread y takes groups y, y + gatherers, …) and those are merged in a tree. The number of groups depends on rows and
// columns alone, so neither type, byte order, alignment, mask nor the number of threads shows in the bits.
//
// Threads read vectors of neighbouring elements where rows lie without gaps or divide into vectors: the elements of a
// vector belong to neighbouring chains, also across the end of a row, since `groups` is a multiple of 8 or 1.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/host_device.hpp"
#include "kernels/functors.hpp"

namespace rowmill::functors {

/// Chains of about 8 rows to begin with, and no more of them than keep a device busy.
constexpr std::int64_t chain_rows = 8, most_chains = 65536;

inline std::int64_t row_groups(std::int64_t rows, std::int64_t columns) {
  const std::int64_t by_rows = (rows + chain_rows - 1) / chain_rows, by_columns = most_chains / columns;
  const std::int64_t wanted = by_rows < by_columns ? by_rows : by_columns;
  return wanted < 2 ? 1 : (wanted + 7) / 8 * 8;
}

/// Threads that gather, columns × groups of them.
constexpr std::int64_t gather_threads = 512;
inline std::int64_t gather_columns(std::int64_t columns) {
  std::int64_t width = 32;
  while (width > columns) width /= 2;
  return width;
}

/// Elements that a thread reads at once: 16 bytes, but no more chains than its registers hold.
template <typename E>
constexpr int vector_elements = E::bytes == 1 ? 8 : static_cast<int>(16 / E::bytes);

template <typename E, int kCount>
struct ElementVector {
  typename E::Bits bits[kCount];
  static constexpr std::size_t bytes = kCount * E::bytes;

  /// `from` is a multiple of `bytes`.
  static ROWMILL_HD ElementVector load(const std::byte* from) {
    ElementVector vector;
    std::memcpy(&vector, __builtin_assume_aligned(from, bytes), bytes);
    return vector;
  }
};

/// Can walk_vectors walk these rows in vectors of so many elements?
inline bool walks_in_vectors(const AnyRows& rows, std::int64_t groups, std::int64_t elements) {
  const std::int64_t bytes = elements * rows.element_bytes;
  if (rows.rows == 0 || rows.row_start != nullptr ||
      reinterpret_cast<std::uintptr_t>(rows.data) % static_cast<std::uint64_t>(bytes) != 0)
    return false;
  if (rows.columns % elements == 0) return rows.stride % elements == 0;
  return rows.stride == rows.columns && groups % elements == 0 &&
         (rows.mask == nullptr || rows.mask_stride == rows.columns);
}

/// The chains of one vector; thread `index` of groups × columns / vector_elements.
template <typename E, typename Task>
ROWMILL_HD inline void walk_vectors(const AnyRows& rows, const Task& task, std::int64_t groups, std::int64_t index,
                                    typename Task::Part* parts) {
  constexpr int lanes = vector_elements<E>;
  const std::int64_t first = index * lanes, group = first / rows.columns, column = first % rows.columns;
  typename Task::Column columns[lanes];
  typename Task::Part sums[lanes];
  std::int64_t lane_group = group, j = column;
  ROWMILL_UNROLL
  for (int lane = 0; lane < lanes; ++lane) {
    columns[lane] = task.column(j);
    sums[lane] = Task::nothing();
    // the last lane's group stays
    if (lane + 1 < lanes && ++j == rows.columns) {
      j = 0;
      ++lane_group;
    }
  }
  const std::byte* from = rows.data + (group * rows.stride + column) * rows.element_bytes;
  const std::uint8_t* mask = rows.mask == nullptr ? nullptr : rows.mask + group * rows.mask_stride + column;
  const std::int64_t step = groups * rows.stride * rows.element_bytes, mask_step = groups * rows.mask_stride;
  std::int64_t base = 0;  // rows that all groups have behind them
  ROWMILL_UNROLL_4
  for (; base + lane_group < rows.rows; base += groups, from += step) {
    const auto vector = ElementVector<E, lanes>::load(from);
    ROWMILL_UNROLL
    for (int lane = 0; lane < lanes; ++lane) {
      const bool masked = mask != nullptr && mask[lane] != 0;
      const double value = E::value(vector.bits[lane]);
      Task::take(sums[lane], columns[lane], masked ? not_a_number() : value);
    }
    if (mask != nullptr) mask += mask_step;
  }
  // what is left of a vector that ends behind the last row; rows then lie without gaps
  const std::int64_t left = (rows.rows - base) * rows.columns - first;
  ROWMILL_UNROLL
  for (int lane = 0; lane < lanes; ++lane) {
    if (lane < left) {
      const bool masked = mask != nullptr && mask[lane] != 0;
      const double value = E::value(E::load(from + lane * static_cast<std::int64_t>(E::bytes)));
      Task::take(sums[lane], columns[lane], masked ? not_a_number() : value);
    }
    parts[first + lane] = sums[lane];
  }
}

/// One chain, of any rows; thread `index` of groups × columns.
template <typename Task>
ROWMILL_HD inline void walk_elements(const AnyRows& rows, const Task& task, std::int64_t groups, std::int64_t index,
                                     typename Task::Part* parts) {
  const std::int64_t j = index % rows.columns;
  const auto column = task.column(j);
  typename Task::Part sums = Task::nothing();
  for (std::int64_t row = index / rows.columns; row < rows.rows; row += groups)
    Task::take(sums, column, value_at(rows, row, j));
  parts[index] = sums;
}

/// What gatherer y of a column keeps.
template <typename Task>
ROWMILL_HD inline typename Task::Part gather(const typename Task::Part* parts, std::int64_t columns,
                                             std::int64_t groups, std::int64_t j, std::int64_t y,
                                             std::int64_t gatherers) {
  typename Task::Part sums = Task::nothing();
  ROWMILL_UNROLL_4
  for (std::int64_t group = y; group < groups; group += gatherers) Task::merge(sums, parts[group * columns + j]);
  return sums;
}

}  // namespace rowmill::functors
