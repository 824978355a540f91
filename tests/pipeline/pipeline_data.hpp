#pragma once
// Random rows that tests of the pipeline send through it, and a check that a block holds the right ones.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/async_host_backend.hpp"
#include "core/backend.hpp"
#include "core/block.hpp"
#include "pipeline/block_pipeline.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill::test {

/// x (float32, dense with a mask, or int16 CSR), y (float64) and weights (uint8) of the same rows. 0xA5, with which a
/// memory source fills what it does not use, is never among the bytes of a value.
struct PipelineData {
  std::int64_t rows, columns;
  std::vector<float> x;
  std::vector<std::uint8_t> mask, weights;
  std::vector<double> y;
  std::vector<std::int64_t> row_start{0}, index;
  std::vector<std::int16_t> value;
  std::unique_ptr<MemorySource> x_source, y_source, weights_source;

  PipelineData(std::int64_t rows_, std::int64_t columns_, std::uint64_t seed, bool sparse = false)
      : rows(rows_), columns(columns_) {
    std::mt19937_64 random(seed);
    const auto number = [&random] { return static_cast<int>(random() % 10000); };
    for (std::int64_t i = 0; i < rows; ++i) {
      y.push_back(number());
      y.push_back(number());
      weights.push_back(static_cast<std::uint8_t>(random() % 100));
      for (std::int64_t j = 0; j < columns; ++j) {
        x.push_back(static_cast<float>(number()));
        mask.push_back(random() % 3 == 0);
        if (random() % 4 != 0) continue;
        index.push_back(j);
        value.push_back(static_cast<std::int16_t>(number()));
      }
      row_start.push_back(static_cast<std::int64_t>(index.size()));
    }
    if (sparse) {
      x_source = MemorySource::csr(columns, row_start, index, value);
    } else {
      x_source = MemorySource::dense(rows, columns, x);
      x_source->set_mask(mask);
    }
    y_source = MemorySource::dense(rows, 2, y);
    weights_source = MemorySource::dense(rows, 1, weights);
  }

  SourceSet sources() const { return {x_source.get(), y_source.get(), weights_source.get()}; }

  /// Empty if the block holds its rows of all three sources, 64-byte aligned; else what is wrong.
  std::string wrong_with(const Block& block) const {
    if (!block.y || !block.weights) return "y or weights missing";
    const std::string at = " of block " + std::to_string(block.id);
    if (row_count(block.x) != block.range.count) return "rows" + at;
    if (!same(*block.y, y.data() + 2 * block.range.first)) return "y" + at;
    if (!same(*block.weights, weights.data() + block.range.first)) return "weights" + at;
    if (const auto* dense = std::get_if<DenseRows>(&block.x)) {
      if (!same(*dense, x.data() + block.range.first * columns)) return "x" + at;
      if (!block.missing || block.missing->rows != block.range.count) return "shape of mask" + at;
      const auto size = static_cast<std::size_t>(block.range.count * columns);
      return std::memcmp(block.missing->data, mask.data() + block.range.first * columns, size) == 0 ? "" : "mask" + at;
    }
    return same(std::get<CsrRows>(block.x), block.range) ? "" : "sparse x" + at;
  }

 private:
  static bool aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 64 == 0; }

  template <typename T>
  static bool same(const DenseRows& rows, const T* expected) {
    const auto bytes = static_cast<std::size_t>(rows.rows * rows.columns) * sizeof(T);
    return aligned(rows.data) && rows.type.dtype == dtype_of<T>() && std::memcmp(rows.data, expected, bytes) == 0;
  }

  bool same(const CsrRows& found, RowRange range) const {
    const std::int64_t base = row_start[static_cast<std::size_t>(range.first)];
    for (std::int64_t i = 0; i <= range.count; ++i) {
      if (found.row_start[i] + base != row_start[static_cast<std::size_t>(range.first + i)]) return false;
    }
    const auto entries = static_cast<std::size_t>(found.row_start[range.count]);
    return aligned(found.row_start) && std::memcmp(found.index, index.data() + base, entries * 8) == 0 &&
           std::memcmp(found.value, value.data() + base, entries * 2) == 0;
  }
};

struct BackendKind {
  const char* name;
  std::unique_ptr<Backend> (*make)();
  friend void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }
};
inline const BackendKind kBackends[] = {
    {"inline", &make_host_backend},
    {"async", [] { return make_async_host_backend(); }},
    {"delayed", [] { return make_async_host_backend({.max_copy_delay_us = 300, .seed = std::random_device{}()}); }}};

/// A seed that the failing test prints.
struct Seed {
  std::uint64_t value = std::random_device{}();
  testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(value)};
};

inline void sleep_us(std::int64_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

/// Hands on to another source, and lets reads go on only while the gate is open.
class GatedSource final : public Source {
 public:
  explicit GatedSource(Source& inner) : inner_(inner) {}
  void open() { open_up_to(std::numeric_limits<std::int64_t>::max()); }
  /// Reads that begin before `row` go on.
  void open_up_to(std::int64_t row) {
    const std::scoped_lock lock(mutex_);
    open_up_to_ = row;
    changed_.notify_all();
  }
  /// False if not so many reads have begun within half a minute.
  bool wait_for_reads(int reads) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return reads_ >= reads; });
  }

  const SourceInfo& info() const override { return inner_.info(); }
  std::size_t bytes_for(RowRange rows) const override { return inner_.bytes_for(rows); }
  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    std::unique_lock lock(mutex_);
    ++reads_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return rows.first < open_up_to_; });
    lock.unlock();
    return inner_.read(rows, to);
  }

 private:
  Source& inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t open_up_to_ = 0;
  int reads_ = 0;
};

}  // namespace rowmill::test
