#include "io/row_layout.hpp"

#include <algorithm>
#include <cstring>

namespace rowmill {

RowLayout::RowLayout(const std::vector<std::int64_t>& shape, int row_axis, bool fortran, std::int64_t element_bytes)
    : element_bytes_(element_bytes) {
  const std::size_t axes = shape.size(), row = static_cast<std::size_t>(row_axis);
  std::vector<std::int64_t> stride(axes, 0);
  for (std::size_t i = axes; i-- > 0;) {
    if (i == row) continue;
    stride[i] = columns_;
    columns_ *= shape[i];
  }
  rows_ = shape[row];
  bool before_row = true;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t axis = fortran ? axes - 1 - i : i;
    if (axis == row) {
      before_row = false;
    } else {
      append(before_row ? outer_ : inner_, {shape[axis], stride[axis]});
    }
  }
  for (const Axis& axis : outer_) outer_count_ *= axis.extent;
  for (const Axis& axis : inner_) inner_count_ *= axis.extent;
  inner_in_order_ = inner_.empty() || (inner_.size() == 1 && inner_[0].stride == 1);
}

/// Neighbouring axes that a row holds in the same order are one axis.
void RowLayout::append(std::vector<Axis>& axes, Axis axis) {
  if (axis.extent == 1) return;
  if (!axes.empty() && axes.back().stride == axis.extent * axis.stride) {
    axes.back() = {axes.back().extent * axis.extent, axis.stride};
  } else {
    axes.push_back(axis);
  }
}

std::int64_t RowLayout::column_of(std::int64_t outer) const {
  std::int64_t column = 0;
  for (std::size_t i = outer_.size(); i-- > 0;) {
    column += outer % outer_[i].extent * outer_[i].stride;
    outer /= outer_[i].extent;
  }
  return column;
}

std::int64_t RowLayout::inner_column(std::int64_t inner) const {
  std::int64_t column = 0;
  for (std::size_t i = inner_.size(); i-- > 0;) {
    column += inner % inner_[i].extent * inner_[i].stride;
    inner /= inner_[i].extent;
  }
  return column;
}

template <typename T>
void RowLayout::scatter_as(const std::byte* from, std::int64_t from_stride, std::int64_t first_outer,
                           std::int64_t outers, std::int64_t rows, T* to) const {
  std::vector<std::int64_t> column(static_cast<std::size_t>(outers));
  for (std::int64_t o = 0; o < outers; ++o) column[static_cast<std::size_t>(o)] = column_of(first_outer + o);
  constexpr std::int64_t kTile = 16;  // rows whose lines stay in cache while the stretches go by
  for (std::int64_t tile = 0; tile < rows; tile += kTile) {
    const std::int64_t tile_end = std::min(rows, tile + kTile);
    for (std::int64_t o = 0; o < outers; ++o) {
      const auto* stretch = reinterpret_cast<const T*>(from + o * from_stride);
      T* place = to + column[static_cast<std::size_t>(o)];
      for (std::int64_t row = tile; row < tile_end; ++row) {
        const T* run = stretch + row * inner_count_;
        T* at = place + row * columns_;
        if (inner_in_order_) {
          std::copy_n(run, inner_count_, at);
        } else {
          for (std::int64_t i = 0; i < inner_count_; ++i) at[inner_column(i)] = run[i];
        }
      }
    }
  }
}

void RowLayout::scatter(const std::byte* from, std::int64_t from_stride, std::int64_t first_outer, std::int64_t outers,
                        std::int64_t rows, std::byte* to) const {
  switch (element_bytes_) {
    case 1:
      return scatter_as(from, from_stride, first_outer, outers, rows, reinterpret_cast<std::uint8_t*>(to));
    case 2:
      return scatter_as(from, from_stride, first_outer, outers, rows, reinterpret_cast<std::uint16_t*>(to));
    case 4:
      return scatter_as(from, from_stride, first_outer, outers, rows, reinterpret_cast<std::uint32_t*>(to));
    default:
      return scatter_as(from, from_stride, first_outer, outers, rows, reinterpret_cast<std::uint64_t*>(to));
  }
}

}  // namespace rowmill
