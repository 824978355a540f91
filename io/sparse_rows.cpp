#include "io/sparse_rows.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "io/stored_values.hpp"

namespace rowmill {

namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

void widen_integers(const std::byte* from, ElementType type, std::int64_t count, std::int64_t* to) {
  with_stored(type, [&](auto element) {
    using Element = decltype(element);
    for (std::int64_t i = 0; i < count; ++i, from += Element::bytes) {
      to[i] = static_cast<std::int64_t>(Element::load(from));
    }
  });
}

SparseLayout::SparseLayout(std::int64_t rows, std::int64_t entries, ElementType value_type)
    : entries_(static_cast<std::size_t>(entries)),
      index_at_(padded(sizeof(std::int64_t) * static_cast<std::size_t>(rows + 1))),
      // 64 bytes more, so that narrow indices can begin at an aligned place
      value_at_(index_at_ + padded(sizeof(std::int64_t) * entries_) + 64),
      value_bytes_(padded(size_of(value_type) * entries_)) {}

std::int64_t* SparseLayout::row_start(std::span<std::byte> buffer) const {
  return reinterpret_cast<std::int64_t*>(buffer.data());
}

std::int64_t* SparseLayout::index(std::span<std::byte> buffer) const {
  return reinterpret_cast<std::int64_t*>(buffer.data() + index_at_);
}

std::byte* SparseLayout::value(std::span<std::byte> buffer) const {
  return buffer.data() + value_at_;
}

std::span<std::byte> SparseLayout::narrow_index(std::span<std::byte> buffer, std::size_t width) const {
  return buffer.subspan(index_at_ + padded((sizeof(std::int64_t) - width) * entries_), padded(width * entries_));
}

std::span<std::byte> SparseLayout::values(std::span<std::byte> buffer) const {
  return buffer.subspan(value_at_, value_bytes_);
}

SparseTidier::SparseTidier(std::string name, std::int64_t first_row, std::int64_t columns, ElementType type)
    : name_(std::move(name)),
      first_row_(first_row),
      columns_(columns),
      type_(type),
      width_(static_cast<std::int64_t>(size_of(type))) {}

bool SparseTidier::is_tidy(const std::int64_t* index, std::int64_t count, std::int64_t row) const {
  bool ascending = true;
  for (std::int64_t k = 0; k < count; ++k) {
    if (index[k] < 0 || index[k] >= columns_) {
      throw Error(ExitCode::input, name_ + ": row " + std::to_string(first_row_ + row) + " has a value in column " +
                                       std::to_string(index[k]) + ", its columns are 0 to " +
                                       std::to_string(columns_ - 1) + ": the file is damaged");
    }
    ascending = ascending && (k == 0 || index[k - 1] < index[k]);
  }
  return ascending;
}

void SparseTidier::tidy(std::span<std::int64_t> row_start, std::int64_t* index, std::byte* value) {
  std::int64_t done = 0;  // entries that stand where they will stay
  const auto rows = static_cast<std::int64_t>(row_start.size()) - 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = std::exchange(row_start[static_cast<std::size_t>(row)], done);
    std::int64_t count = row_start[static_cast<std::size_t>(row) + 1] - first;
    const bool tidy = is_tidy(index + first, count, row);
    if (first != done) {
      std::memmove(index + done, index + first, sizeof(std::int64_t) * static_cast<std::size_t>(count));
      std::memmove(value + done * width_, value + first * width_, static_cast<std::size_t>(count * width_));
    }
    if (!tidy) count = sort_and_sum(index + done, value + done * width_, count, row);
    done += count;
  }
  row_start[static_cast<std::size_t>(rows)] = done;
}

std::int64_t SparseTidier::sort_and_sum(std::int64_t* index, std::byte* value, std::int64_t count, std::int64_t row) {
  order_.resize(static_cast<std::size_t>(count));
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  // in the order of the file where a column comes again, so that its sum has the same bits every time
  std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) { return index[a] < index[b]; });
  index_.assign(index, index + count);
  value_.assign(value, value + count * width_);
  std::int64_t kept = 0;
  for (const std::int64_t k : order_) {
    const std::byte* from = value_.data() + k * width_;
    const std::int64_t column = index_[static_cast<std::size_t>(k)];
    if (kept > 0 && index[kept - 1] == column) {
      add(value + (kept - 1) * width_, from, row, column);
    } else {
      index[kept] = column;
      std::memcpy(value + kept * width_, from, static_cast<std::size_t>(width_));
      ++kept;
    }
  }
  return kept;
}

void SparseTidier::add(std::byte* into, const std::byte* more, std::int64_t row, std::int64_t column) const {
  const bool fits = with_stored(type_, [&](auto element) {
    using Element = decltype(element);
    using Value = typename Element::Value;
    if constexpr (Element::bytes == sizeof(Value)) {
      const Value a = Element::load(into), b = Element::load(more);
      Value sum = 0;
      if constexpr (std::is_integral_v<Value>) {
        if (__builtin_add_overflow(a, b, &sum)) return false;
      } else {
        sum = a + b;
      }
      Element::store(sum, into);
      return true;
    } else {
      return false;  // halves are not summed here
    }
  });
  if (fits) return;
  throw Error(ExitCode::input, name_ + ": row " + std::to_string(first_row_ + row) + " has column " +
                                   std::to_string(column) + " more than once, and the sum of its values is no " +
                                   name_of(type_.dtype) + ": write it again with duplicates summed in a wider type");
}

}  // namespace rowmill
