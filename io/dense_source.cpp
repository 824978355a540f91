#include "io/dense_source.hpp"

#include <stdexcept>

namespace rowmill {

DenseSource::DenseSource(SourceInfo info)
    : info_(std::move(info)), row_bytes_(info_.columns * static_cast<std::int64_t>(size_of(info_.type))) {}

SourceRows DenseSource::read(RowRange rows, std::span<std::byte> to) {
  if (rows.first < 0 || rows.count < 0 || rows.first > info_.rows || rows.count > info_.rows - rows.first) {
    throw std::out_of_range("rows outside " + info_.name());
  }
  if (to.size() < bytes_for(rows)) throw std::length_error("a buffer too small for rows of " + info_.name());
  if (rows.count > 0) fill(rows, to.data());
  return {DenseRows{to.data(), info_.type, rows.count, info_.columns, info_.columns}, {}};
}

}  // namespace rowmill
