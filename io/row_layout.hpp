#pragma once
// Where the elements of a row lie in a file whose axes come in another order than rows and columns.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rowmill {

/// The file's axes, slowest first, seen from the row axis: `outer` stretches, in each of them `rows` runs of `inner`
/// elements. Each element's place within a delivered row is given by strides.
class RowLayout {
 public:
  /// shape: all axes of the data set; fortran: the first axis varies fastest in the file.
  RowLayout(const std::vector<std::int64_t>& shape, int row_axis, bool fortran, std::int64_t element_bytes);

  /// True where rows lie in the file as they are delivered.
  bool rows_in_order() const { return outer_.empty() && inner_in_order_; }
  /// True where a run of one row lies in the file as it is delivered.
  bool inner_in_order() const { return inner_in_order_; }

  std::int64_t outer() const { return outer_count_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t inner() const { return inner_count_; }

  /// Element of a delivered row at which the run of stretch `outer` begins.
  std::int64_t column_of(std::int64_t outer) const;

  /// Copies `rows` runs of each of the stretches [first_outer, first_outer + outers) to their places. from: stretch
  /// after stretch, `from_stride` bytes apart. to: row after row, without gaps.
  void scatter(const std::byte* from, std::int64_t from_stride, std::int64_t first_outer, std::int64_t outers,
               std::int64_t rows, std::byte* to) const;

 private:
  struct Axis {
    std::int64_t extent, stride;  ///< stride: elements of a delivered row
  };
  static void append(std::vector<Axis>& axes, Axis axis);
  std::int64_t inner_column(std::int64_t inner) const;
  template <typename T>
  void scatter_as(const std::byte* from, std::int64_t from_stride, std::int64_t first_outer, std::int64_t outers,
                  std::int64_t rows, T* to) const;

  std::vector<Axis> outer_, inner_;
  std::int64_t rows_ = 0, columns_ = 1, outer_count_ = 1, inner_count_ = 1, element_bytes_;
  bool inner_in_order_ = true;
};

}  // namespace rowmill
