#include "io/chunk_grid.hpp"

#include <cstring>

namespace rowmill {

namespace {

/// Elements that lie side by side in a storage chunk go to places that are `to_stride` apart, line by line.
struct Lines {
  std::int64_t count = 1, from_stride = 0, to_stride = 0;  ///< lines
  std::int64_t elements = 1, element_stride = 1;           ///< of a line, as delivered
};

template <typename T>
void copy_lines(const Lines& lines, const T* from, T* to) {
  if (lines.element_stride == 1) {
    for (std::int64_t i = 0; i < lines.count; ++i, from += lines.from_stride, to += lines.to_stride) {
      if (lines.elements < 8) {
        for (std::int64_t j = 0; j < lines.elements; ++j) to[j] = from[j];
      } else {
        std::memcpy(to, from, static_cast<std::size_t>(lines.elements) * sizeof(T));
      }
    }
    return;
  }
  constexpr std::int64_t kTile = 16;  // elements of a line whose places stay in cache while the lines go by
  for (std::int64_t tile = 0; tile < lines.elements; tile += kTile) {
    const std::int64_t end = std::min(lines.elements, tile + kTile);
    for (std::int64_t i = 0; i < lines.count; ++i) {
      const T* line = from + i * lines.from_stride;
      T* place = to + i * lines.to_stride;
      for (std::int64_t j = tile; j < end; ++j) place[j * lines.element_stride] = line[j];
    }
  }
}

/// The two axes that vary fastest are lines and their elements; the others are walked here.
template <typename T, typename Steps>
void copy_as(const Steps& steps, const std::byte* from, std::byte* to) {
  const std::size_t last = steps.size() - 1, walked = last == 0 ? 0 : last - 1;
  Lines lines;
  if (last > 0) {
    lines.count = steps[walked].extent;
    lines.from_stride = steps[walked].from_stride;
    lines.to_stride = steps[walked].to_stride;
  }
  lines.elements = steps[last].extent;
  lines.element_stride = steps[last].to_stride;
  std::array<std::int64_t, kMaxAxes + 1> at = {};
  for (;;) {
    std::int64_t source = 0, place = 0;
    for (std::size_t i = 0; i < walked; ++i) {
      source += at[i] * steps[i].from_stride;
      place += at[i] * steps[i].to_stride;
    }
    copy_lines(lines, reinterpret_cast<const T*>(from) + source, reinterpret_cast<T*>(to) + place);
    std::size_t axis = walked;
    while (axis > 0 && ++at[axis - 1] == steps[axis - 1].extent) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace

ChunkGrid::ChunkGrid(const InputPlan& plan)
    : shape_(plan.shape),
      chunk_(plan.chunk),
      rows_(plan.rows()),
      band_rows_(plan.chunk[static_cast<std::size_t>(plan.row_axis)]),
      row_bytes_(plan.row_bytes()),
      element_bytes_(static_cast<std::int64_t>(size_of(plan.type))) {
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    add_axis({shape_[i], chunk_[i], static_cast<int>(i) == plan.row_axis});
  }
  set_strides();
  whole_rows_ = row_ == 0 && (axes_.size() == 1 || (axes_.size() == 2 && axes_[1].chunk == axes_[1].extent));
}

void ChunkGrid::add_axis(Axis axis) {
  if (axis.is_row) {
    row_ = axes_.size();
  } else if (axis.extent == 1 && axis.chunk == 1) {
    return;
  } else if (!axes_.empty() && !axes_.back().is_row && axis.chunk == axis.extent) {
    axes_.back().extent *= axis.extent;
    axes_.back().chunk *= axis.chunk;
    return;
  }
  axes_.push_back(axis);
}

void ChunkGrid::set_strides() {
  std::int64_t column = 1;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    Axis& axis = axes_[i];
    axis.cells = (axis.extent - 1) / axis.chunk + 1;
    axis.from_stride = chunk_elements_;
    chunk_elements_ *= axis.chunk;
    if (axis.is_row) {
      cells_behind_ = cells_;
      continue;
    }
    axis.to_stride = column;
    column *= axis.extent;
    cells_ *= axis.cells;
  }
  axes_[row_].to_stride = column;
}

RowRange ChunkGrid::rows_of(std::int64_t band) const {
  const std::int64_t first = band * band_rows_;
  return {first, std::min(band_rows_, rows_ - first)};
}

std::int64_t ChunkGrid::index_of(std::int64_t band, std::int64_t cell) const {
  const std::int64_t before = cell / cells_behind_, behind = cell % cells_behind_;
  return (before * axes_[row_].cells + band) * cells_behind_ + behind;
}

std::string ChunkGrid::coordinates(std::int64_t grid_index) const {
  std::string text;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    const std::int64_t along = (shape_[i] - 1) / chunk_[i] + 1;
    text.insert(0, std::to_string(grid_index % along * chunk_[i]) + (text.empty() ? "" : ", "));
    grid_index /= along;
  }
  return "(" + text + ")";
}

ChunkGrid::Part ChunkGrid::part_of(std::int64_t cell) const {
  Part part;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i].is_row) continue;
    const std::int64_t begin = cell % axes_[i].cells * axes_[i].chunk;
    cell /= axes_[i].cells;
    part.extent[i] = std::min(axes_[i].chunk, axes_[i].extent - begin);
    part.column += begin * axes_[i].to_stride;
  }
  return part;
}

bool ChunkGrid::is_partial(std::int64_t band, std::int64_t cell) const {
  Part part = part_of(cell);
  part.extent[row_] = rows_of(band).count;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (part.extent[i] < axes_[i].chunk) return true;
  }
  return false;
}

std::int64_t ChunkGrid::row_elements(std::int64_t cell) const {
  const Part part = part_of(cell);
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (i != row_) elements *= part.extent[i];
  }
  return elements;
}

void ChunkGrid::copy_steps(const Steps& steps, const std::byte* from, std::byte* to) const {
  switch (element_bytes_) {
    case 1:
      return copy_as<std::uint8_t>(steps, from, to);
    case 2:
      return copy_as<std::uint16_t>(steps, from, to);
    case 4:
      return copy_as<std::uint32_t>(steps, from, to);
    default:
      return copy_as<std::uint64_t>(steps, from, to);
  }
}

void ChunkGrid::copy(std::int64_t cell, RowRange rows, const std::byte* chunk, std::byte* to) const {
  if (rows.count == 0) return;
  Part part = part_of(cell);
  part.extent[row_] = rows.count;
  Steps steps;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    steps.push_back({part.extent[i], axes_[i].from_stride, axes_[i].to_stride});
  }
  copy_steps(steps, chunk + rows.first * axes_[row_].from_stride * element_bytes_, to + part.column * element_bytes_);
}

/// Strides of a row's elements that lie without gaps, in the order in which a row has them; of rows likewise.
std::vector<std::int64_t> ChunkGrid::packed_strides(const Part& part) const {
  std::vector<std::int64_t> strides(axes_.size());
  std::int64_t stride = 1;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    if (i == row_) continue;
    strides[i] = stride;
    stride *= part.extent[i];
  }
  strides[row_] = stride;
  return strides;
}

void ChunkGrid::pack(std::int64_t cell, RowRange rows, const std::byte* chunk, std::byte* to) const {
  if (rows.count == 0) return;
  Part part = part_of(cell);
  const std::vector<std::int64_t> packed = packed_strides(part);
  part.extent[row_] = rows.count;
  Steps steps;
  for (std::size_t i = 0; i < axes_.size(); ++i) steps.push_back({part.extent[i], axes_[i].from_stride, packed[i]});
  copy_steps(steps, chunk + rows.first * axes_[row_].from_stride * element_bytes_, to);
}

void ChunkGrid::unpack(std::int64_t cell, std::int64_t rows, const std::byte* packed, std::byte* to) const {
  if (rows == 0) return;
  const Part part = part_of(cell);
  const std::vector<std::int64_t> strides = packed_strides(part);
  Steps steps = {{rows, strides[row_], axes_[row_].to_stride}};
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (i != row_) steps.push_back({part.extent[i], strides[i], axes_[i].to_stride});
  }
  if (steps.size() == 1) steps.push_back({1, 1, 1});
  copy_steps(steps, packed, to + part.column * element_bytes_);
}

void ChunkGrid::fill(std::int64_t cell, std::int64_t rows, const FillValue& value, std::byte* to) const {
  if (whole_rows_) return value.repeat(rows * (row_bytes_ / element_bytes_), to);
  const Part part = part_of(cell);
  const std::size_t axes = axes_.size();
  // the last of the axes that are not rows varies fastest in a row
  const std::size_t run = axes == 1 ? 0 : (row_ == axes - 1 ? axes - 2 : axes - 1);
  std::array<std::int64_t, kMaxAxes> extent = part.extent, at = {};
  extent[row_] = rows;
  const std::int64_t run_elements = axes == 1 ? 1 : extent[run];
  if (axes > 1) extent[run] = 1;
  for (;;) {
    std::int64_t place = part.column;
    for (std::size_t i = 0; i < axes; ++i) place += at[i] * axes_[i].to_stride;
    value.repeat(run_elements, to + place * element_bytes_);
    std::size_t axis = axes;
    while (axis > 0 && ++at[axis - 1] == extent[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace rowmill
