#pragma once
// A source in memory, for tests: dense or CSR, with an optional mask, and with faults: an error at a row, a delay.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/source.hpp"

namespace rowmill::test {

/// The DType of a C++ type (float16 and bfloat16 have none: give their bits and the type by hand).
template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::f64;
  } else {
    static_assert(std::is_integral_v<T>);
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DType::i8 : DType::u8;
    if constexpr (sizeof(T) == 2) return is_signed ? DType::i16 : DType::u16;
    if constexpr (sizeof(T) == 4) return is_signed ? DType::i32 : DType::u32;
    if constexpr (sizeof(T) == 8) return is_signed ? DType::i64 : DType::u64;
  }
}

/// Bytes in the other order, element by element: what a file of the other byte order holds.
inline std::vector<std::byte> swap_elements(std::vector<std::byte> bytes, std::size_t element_bytes) {
  for (std::size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + element_bytes));
  }
  return bytes;
}

/// Thread safe as every source. Bytes of a buffer that no row uses are overwritten with 0xA5, so that a reader of them
/// is found out. Set faults before the first read.
class MemorySource : public Source {
 public:
  /// `values`: rows × columns, row-major, in the stored type and byte order.
  static std::unique_ptr<MemorySource> dense(ElementType type, std::int64_t rows, std::int64_t columns,
                                             std::vector<std::byte> values) {
    auto source = std::unique_ptr<MemorySource>(new MemorySource(type, rows, columns));
    if (static_cast<std::int64_t>(values.size()) != rows * columns * source->width_) {
      throw std::invalid_argument("values do not fill rows x columns");
    }
    source->values_ = std::move(values);
    return source;
  }

  template <typename T>
  static std::unique_ptr<MemorySource> dense(std::int64_t rows, std::int64_t columns, const std::vector<T>& values,
                                             bool swapped = false) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    if (swapped) bytes = swap_elements(std::move(bytes), sizeof(T));
    return dense(ElementType{dtype_of<T>(), swapped}, rows, columns, std::move(bytes));
  }

  /// row_start: rows + 1 entries from 0; index and value: row_start.back() entries.
  template <typename T>
  static std::unique_ptr<MemorySource> csr(std::int64_t columns, std::vector<std::int64_t> row_start,
                                           std::vector<std::int64_t> index, const std::vector<T>& value) {
    const auto rows = static_cast<std::int64_t>(row_start.size()) - 1;
    auto source = std::unique_ptr<MemorySource>(new MemorySource({dtype_of<T>(), false}, rows, columns));
    if (static_cast<std::size_t>(row_start.back()) != value.size() || index.size() != value.size()) {
      throw std::invalid_argument("row_start, index and value disagree");
    }
    source->values_.resize(value.size() * sizeof(T));
    if (!value.empty()) std::memcpy(source->values_.data(), value.data(), source->values_.size());
    source->info_.entries = row_start.back();
    for (std::size_t row = 1; row < row_start.size(); ++row) {
      const auto n = static_cast<double>(row_start[row] - row_start[row - 1]);
      source->info_.entry_pairs += n * (n + 1) / 2;
    }
    source->row_start_ = std::move(row_start);
    source->index_ = std::move(index);
    return source;
  }

  /// One byte an element of a dense source, 1 where it is missing.
  void set_mask(std::vector<std::uint8_t> mask) {
    if (static_cast<std::int64_t>(mask.size()) != info_.rows * info_.columns) throw std::invalid_argument("mask size");
    mask_ = std::move(mask);
  }
  /// A read that touches this row throws Error(input) with the row.
  void throw_at_row(std::int64_t row) { throw_at_ = row; }
  /// Every read sleeps this long; one that touches `slow_row` sleeps `slow` besides.
  void set_delay(std::chrono::microseconds each, std::int64_t slow_row = -1, std::chrono::microseconds slow = {}) {
    delay_ = each;
    slow_row_ = slow_row;
    slow_delay_ = slow;
  }
  SourceInfo& mutable_info() { return info_; }
  std::int64_t reads() const { return reads_.load(); }

  const SourceInfo& info() const override { return info_; }

  std::size_t bytes_for(RowRange rows) const override {
    if (row_start_.empty()) {
      const auto elements = static_cast<std::size_t>(rows.count * info_.columns);
      return padded(elements * static_cast<std::size_t>(width_)) + (mask_.empty() ? 0 : padded(elements));
    }
    const std::size_t entries = entry_count(rows);
    return padded(sizeof(std::int64_t) * static_cast<std::size_t>(rows.count + 1)) +
           padded(sizeof(std::int64_t) * entries) + padded(entries * static_cast<std::size_t>(width_));
  }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    reads_.fetch_add(1);
    check(rows, to);
    sleep(rows);
    if (throw_at_ >= rows.first && throw_at_ < rows.end()) {
      throw Error(ExitCode::input, "memory: row " + std::to_string(throw_at_) + " cannot be read", throw_at_);
    }
    std::memset(to.data(), 0xA5, to.size());
    SourceRows result = row_start_.empty() ? read_dense(rows, to) : read_csr(rows, to);
    count_bytes(static_cast<std::int64_t>(bytes_for(rows)));
    return result;
  }

 private:
  MemorySource(ElementType type, std::int64_t rows, std::int64_t columns)
      : width_(static_cast<std::int64_t>(size_of(type))) {
    info_.path = "memory";
    info_.dataset = "/X";
    info_.format = "memory";
    info_.rows = rows;
    info_.columns = columns;
    info_.type = type;
    info_.stored_type = name_of(type);
    info_.shape = {rows, columns};
    info_.storage = "memory";
    info_.way = "memory";
  }

  static std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::size_t entry_count(RowRange rows) const {
    return static_cast<std::size_t>(row_start_[static_cast<std::size_t>(rows.end())] -
                                    row_start_[static_cast<std::size_t>(rows.first)]);
  }

  void check(RowRange rows, std::span<std::byte> to) const {
    if (rows.first < 0 || rows.count < 0 || rows.end() > info_.rows) throw std::out_of_range("rows outside the source");
    if (to.size() < bytes_for(rows)) throw std::length_error("buffer too small");
    if (reinterpret_cast<std::uintptr_t>(to.data()) % 64 != 0)
      throw std::invalid_argument("buffer not 64-byte aligned");
  }

  void sleep(RowRange rows) const {
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    if (slow_row_ >= rows.first && slow_row_ < rows.end()) std::this_thread::sleep_for(slow_delay_);
  }

  SourceRows read_dense(RowRange rows, std::span<std::byte> to) const {
    const auto first = static_cast<std::size_t>(rows.first * info_.columns);
    const auto elements = static_cast<std::size_t>(rows.count * info_.columns);
    const auto width = static_cast<std::size_t>(width_);
    if (elements > 0) std::memcpy(to.data(), values_.data() + first * width, elements * width);
    SourceRows result{DenseRows{to.data(), info_.type, rows.count, info_.columns, info_.columns}, {}};
    if (!mask_.empty()) {
      std::byte* mask = to.data() + padded(elements * width);
      if (elements > 0) std::memcpy(mask, mask_.data() + first, elements);
      result.missing = MaskView{reinterpret_cast<const std::uint8_t*>(mask), rows.count, info_.columns, info_.columns};
    }
    return result;
  }

  SourceRows read_csr(RowRange rows, std::span<std::byte> to) const {
    const std::size_t entries = entry_count(rows), width = static_cast<std::size_t>(width_);
    auto* start = reinterpret_cast<std::int64_t*>(to.data());
    const std::int64_t base = row_start_[static_cast<std::size_t>(rows.first)];
    for (std::int64_t i = 0; i <= rows.count; ++i)
      start[i] = row_start_[static_cast<std::size_t>(rows.first + i)] - base;
    std::byte* index = to.data() + padded(sizeof(std::int64_t) * static_cast<std::size_t>(rows.count + 1));
    std::byte* value = index + padded(sizeof(std::int64_t) * entries);
    if (entries > 0) {
      std::memcpy(index, index_.data() + base, sizeof(std::int64_t) * entries);
      std::memcpy(value, values_.data() + static_cast<std::size_t>(base) * width, entries * width);
    }
    return {CsrRows{start, reinterpret_cast<const std::int64_t*>(index), value, info_.type, rows.count, info_.columns},
            {}};
  }

  SourceInfo info_;
  std::int64_t width_;
  std::vector<std::byte> values_;
  std::vector<std::int64_t> row_start_, index_;
  std::vector<std::uint8_t> mask_;
  std::int64_t throw_at_ = -1, slow_row_ = -1;
  std::chrono::microseconds delay_{0}, slow_delay_{0};
  std::atomic<std::int64_t> reads_{0};
};

}  // namespace rowmill::test
