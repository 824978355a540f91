#pragma once
// Sparse rows as files hold them, made what kernels take: columns in range, ascending, each once in a row.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/source.hpp"

namespace rowmill {

/// Integers of any type as int64. What int64 does not hold becomes negative. `to` may lie over `from` if no element is
/// overwritten before it is read.
void widen_integers(const std::byte* from, ElementType type, std::int64_t count, std::int64_t* to);

/// Where the parts of sparse rows lie in a reader's buffer.
class SparseLayout {
 public:
  SparseLayout(std::int64_t rows, std::int64_t entries, ElementType value_type);
  std::size_t bytes() const { return value_at_ + value_bytes_; }

  std::int64_t* row_start(std::span<std::byte> buffer) const;
  std::int64_t* index(std::span<std::byte> buffer) const;
  std::byte* value(std::span<std::byte> buffer) const;
  /// Room for `width` bytes an index, of which widen_integers() makes index(): 64-byte aligned.
  std::span<std::byte> narrow_index(std::span<std::byte> buffer, std::size_t width) const;
  std::span<std::byte> values(std::span<std::byte> buffer) const;

 private:
  std::size_t entries_, index_at_, value_at_, value_bytes_;
};

/// Checks columns, sorts the rows that need it, and sums the values of a column that comes more than once in a row (as
/// SciPy's sum_duplicates and AnnData do). Moves what is behind forward and sets row_start. Throws Error(input) naming
/// the row: a column that is not there, a sum that the type does not hold.
class SparseTidier {
 public:
  /// `first_row`: what rows are counted from in messages that begin with `name`.
  SparseTidier(std::string name, std::int64_t first_row, std::int64_t columns, ElementType type);
  void tidy(std::span<std::int64_t> row_start, std::int64_t* index, std::byte* value);

 private:
  bool is_tidy(const std::int64_t* index, std::int64_t count, std::int64_t row) const;
  std::int64_t sort_and_sum(std::int64_t* index, std::byte* value, std::int64_t count, std::int64_t row);
  void add(std::byte* into, const std::byte* more, std::int64_t row, std::int64_t column) const;

  std::string name_;
  std::int64_t first_row_, columns_;
  ElementType type_;
  std::int64_t width_;
  std::vector<std::int64_t> order_, index_;
  std::vector<std::byte> value_;
};

}  // namespace rowmill
