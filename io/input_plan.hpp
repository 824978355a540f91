#pragma once
// All that a rank needs to read a source: plain numbers, checked against the file, sent from rank 0 to all.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/conventions.hpp"
#include "io/filters/filters.hpp"
#include "io/h5_helper/protocol.hpp"
#include "io/source.hpp"

namespace rowmill {

inline constexpr std::size_t kMaxAxes = 32;  ///< HDF5 has no more

enum class Way : std::uint8_t {
  contiguous,  ///< pread from `offset` on
  chunks,      ///< pread of storage chunks at their addresses, decoded here; others hold the fill value
  fetched,     ///< the same, but the helper fetches storage chunks, of which there are too many to list
  fill,        ///< nothing is stored: all elements are the fill value
  helper,      ///< H5Dread in the helper
  csr,         ///< sparse, by rows: parts are index pointers, indices and values, one column each
  csc,         ///< sparse, by columns: parts likewise
  columns,     ///< side by side: the columns of part i lie at its `places`
  rows         ///< one below another: the rows of all parts
};
inline constexpr Way kLastWay = Way::rows;

struct InputPlan {
  std::string path, dataset, format;
  Way way = Way::contiguous;
  std::vector<std::int64_t> shape;  ///< all axes
  int row_axis = 0;
  bool fortran = false;  ///< the first axis varies fastest in the file
  ElementType type;
  std::string stored_type, storage;
  std::int64_t offset = 0;
  std::vector<std::byte> fill;              ///< one element
  std::vector<std::int64_t> chunk;          ///< extents of a storage chunk; empty if there are none
  std::vector<h5::ChunkEntry> chunk_table;  ///< ascending by grid index
  std::vector<FilterStep> filters;          ///< of storage chunks, in the order of writing
  bool edges_unfiltered = false;            ///< storage chunks that reach beyond the data set went through none of them
  std::vector<std::string> warnings;
  bool has_planted = false;
  std::string format_reason;              ///< how the format is known
  Conventions conventions;                ///< applied to what is read
  std::vector<std::string> column_names;  ///< empty, or one a column
  std::vector<InputPlan> parts;           ///< what csr, csc, columns and rows are made of
  std::vector<std::int64_t> places;       ///< of a part: which columns of the whole its own are
  std::int64_t file_bytes = 0, modified_ns = 0;

  std::int64_t rows() const { return shape[static_cast<std::size_t>(row_axis)]; }
  std::int64_t columns() const;    ///< of a checked plan
  std::int64_t row_bytes() const;  ///< of a checked plan
  std::string name() const { return dataset.empty() ? path : path + ":" + dataset; }
};

/// True where any rows can be read from storage chunks without reading these whole.
bool is_read_in_place(const InputPlan& plan);

/// Throws Error(input) unless every number is in range, no product overflows, everything lies within the file, and a
/// row is no longer than `row_limit` bytes.
void check_plan(const InputPlan& plan, std::int64_t row_limit);

SourceInfo info_of(const InputPlan& plan);

std::vector<std::byte> serialise(const InputPlan& plan);
/// Throws Error(failed) for what serialise() does not give.
InputPlan deserialise_plan(const std::vector<std::byte>& bytes);

}  // namespace rowmill
