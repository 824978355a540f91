#pragma once
// A view of a dense row-major matrix. Owns nothing.
#include <cstdint>
#include <type_traits>

namespace rowmill {

/// rows × cols, row-major; element (i, j) is data[i * stride + j]; stride in elements, stride >= cols.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0, cols = 0, stride = 0;

  T& at(std::int64_t i, std::int64_t j) const { return data[i * stride + j]; }
  T* row(std::int64_t i) const { return data + i * stride; }
  MatrixView middle_rows(std::int64_t first, std::int64_t count) const { return {row(first), count, cols, stride}; }
  template <typename U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) operator MatrixView<U>() const {
    return {data, rows, cols, stride};
  }
};

/// One byte an element: 1 where the value is missing. rows × cols, row-major, stride in bytes.
using MaskView = MatrixView<const std::uint8_t>;

}  // namespace rowmill
