#pragma once
// A data set in storage chunks without filters: their bytes are read at their addresses. And one of which nothing is
// stored: all fill value.
#include <array>

#include "core/pool.hpp"
#include "io/dense_source.hpp"
#include "io/input_plan.hpp"
#include "io/read_file.hpp"

namespace rowmill {

/// What elements hold that were never written.
class FillValue {
 public:
  explicit FillValue(std::vector<std::byte> element);
  void repeat(std::int64_t count, std::byte* to) const;

 private:
  std::vector<std::byte> element_;
  bool all_bytes_same_;
};

class FillSource : public DenseSource {
 public:
  explicit FillSource(const InputPlan& plan) : DenseSource(info_of(plan)), value_(plan.fill) {}

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  FillValue value_;
};

/// Rows are axis 0. A storage chunk may be of any extents, reach beyond the data set, or not be there (fill value).
class ChunkSource : public DenseSource {
 public:
  explicit ChunkSource(const InputPlan& plan);

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  /// Axes behind the rows; neighbours of which the storage chunk holds the inner one whole are one axis.
  struct Axis {
    std::int64_t extent, chunk, cells, stride;  ///< stride: elements of a row
  };
  /// The part of one storage chunk that lies within the data set, without the row axis.
  struct Part {
    std::array<std::int64_t, kMaxAxes> extent = {};  ///< by axis
    std::int64_t column = 0;                         ///< where it begins in a row
    std::int64_t elements = 1;                       ///< of a row
  };
  Part part_of(std::int64_t cell) const;
  std::int64_t address_of(std::int64_t cell) const;  ///< -1: never written
  /// Calls body(element of the chunk's row, column of the row, elements) for each run of one row.
  template <typename F>
  void for_runs(const Part& part, F&& body) const;
  void fill_part(const Part& part, RowRange rows, std::byte* to) const;
  void read_part(const Part& part, std::int64_t address, RowRange rows, std::byte* to);
  void read(std::int64_t offset, std::byte* to, std::int64_t bytes, std::int64_t row);

  ReadFile file_;
  std::vector<Axis> axes_;
  FillValue value_;
  std::vector<h5::ChunkEntry> table_;
  std::int64_t chunk_rows_, cells_ = 1, chunk_row_elements_ = 1;
  bool whole_rows_ = false;  ///< a row lies in one storage chunk, in one piece
  MemoryPool scratch_;
};

}  // namespace rowmill
