#pragma once
// How the storage chunks of a data set cover its rows.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/fill_value.hpp"
#include "io/input_plan.hpp"

namespace rowmill {

/// Storage chunks lie in bands along the row axis, each of `cells` storage chunks side by side. A storage chunk may be
/// of any extents and reach beyond the data set. Immutable, so thread safe.
class ChunkGrid {
 public:
  /// Of a checked plan with storage chunks and at least one row and column.
  explicit ChunkGrid(const InputPlan& plan);

  std::int64_t band_rows() const { return band_rows_; }
  std::int64_t cells() const { return cells_; }
  /// Bytes of a whole storage chunk, what reaches beyond the data set included.
  std::int64_t chunk_bytes() const { return chunk_elements_ * element_bytes_; }
  /// Bytes of the rows of a band, as they are delivered.
  std::int64_t band_bytes() const { return std::min(band_rows_, rows_) * row_bytes_; }
  std::int64_t row_bytes() const { return row_bytes_; }
  RowRange rows_of(std::int64_t band) const;

  /// True where the rows of a band lie in one storage chunk as they are delivered, one behind the other.
  bool whole_rows() const { return whole_rows_; }
  /// True where all elements that a storage chunk holds of one row lie side by side.
  bool rows_together() const { return row_ == 0; }

  /// True if the storage chunk reaches beyond the data set.
  bool is_partial(std::int64_t band, std::int64_t cell) const;

  /// Place in the grid of storage chunks, row-major.
  std::int64_t index_of(std::int64_t band, std::int64_t cell) const;
  /// "(20, 300)": the first element of the storage chunk.
  std::string coordinates(std::int64_t grid_index) const;

  /// Copies rows of a whole storage chunk to their places. rows: counted from the chunk's first row, within the data
  /// set. to: the first of these rows, all of its columns, the others behind it without gaps.
  void copy(std::int64_t cell, RowRange rows, const std::byte* chunk, std::byte* to) const;
  /// The same, but `to` gets only what the storage chunk holds of each row, packed_bytes() in all; and from
  /// there to their places.
  void pack(std::int64_t cell, RowRange rows, const std::byte* chunk, std::byte* to) const;
  void unpack(std::int64_t cell, std::int64_t rows, const std::byte* packed, std::byte* to) const;
  std::int64_t packed_bytes(std::int64_t cell, std::int64_t rows) const {
    return rows * row_elements(cell) * element_bytes_;
  }
  /// The same as copy() for a storage chunk that was never written.
  void fill(std::int64_t cell, std::int64_t rows, const FillValue& value, std::byte* to) const;

  /// Calls body(element of the chunk's row, column, elements) for each run of elements of a row that lie together in
  /// the chunk. Only where rows_together().
  template <typename F>
  void for_runs(std::int64_t cell, F&& body) const;

  std::int64_t chunk_row_elements() const { return chunk_elements_ / band_rows_; }
  /// Elements of a row that the storage chunk holds.
  std::int64_t row_elements(std::int64_t cell) const;

 private:
  /// Neighbours of which the storage chunk holds the inner one whole are one axis.
  struct Axis {
    std::int64_t extent, chunk;
    bool is_row;
    std::int64_t cells = 1;
    std::int64_t from_stride = 1, to_stride = 1;  ///< elements of a storage chunk, of delivered rows
  };
  /// The part of a storage chunk that lies within the data set.
  struct Part {
    std::array<std::int64_t, kMaxAxes> extent = {};
    std::int64_t column = 0;
  };
  void add_axis(Axis axis);
  void set_strides();
  Part part_of(std::int64_t cell) const;
  /// An axis along which elements are copied.
  struct Step {
    std::int64_t extent, from_stride, to_stride;  ///< strides in elements
  };
  using Steps = std::vector<Step>;  ///< slowest first; elements of the last lie side by side where they come from
  std::vector<std::int64_t> packed_strides(const Part& part) const;
  void copy_steps(const Steps& steps, const std::byte* from, std::byte* to) const;

  std::vector<std::int64_t> shape_, chunk_;
  std::vector<Axis> axes_;  ///< as in the file, slowest first
  std::size_t row_ = 0;     ///< the row axis among them
  std::int64_t rows_, band_rows_, row_bytes_, element_bytes_, cells_ = 1, cells_behind_ = 1, chunk_elements_ = 1;
  bool whole_rows_ = false;
};

template <typename F>
void ChunkGrid::for_runs(std::int64_t cell, F&& body) const {
  const Part part = part_of(cell);
  if (axes_.size() == 1) return body(std::int64_t{0}, std::int64_t{0}, std::int64_t{1});
  const std::size_t last = axes_.size() - 1;
  std::array<std::int64_t, kMaxAxes> at = {};
  for (;;) {
    std::int64_t in_chunk = 0, column = part.column;
    for (std::size_t i = 1; i < last; ++i) {
      in_chunk += at[i] * axes_[i].from_stride;
      column += at[i] * axes_[i].to_stride;
    }
    body(in_chunk, column, part.extent[last]);
    std::size_t axis = last;
    while (axis > 1 && ++at[axis - 1] == part.extent[axis - 1]) at[--axis] = 0;
    if (axis <= 1) return;
  }
}

}  // namespace rowmill
