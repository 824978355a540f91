#include "io/sparse_columns.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "core/pool.hpp"
#include "io/scratch.hpp"
#include "io/sparse_rows.hpp"

namespace rowmill {

namespace {

/// The columns wanted, renumbered. A column may be wanted more than once.
class SelectedSparseColumns : public Source {
 public:
  SelectedSparseColumns(std::unique_ptr<Source> source, const std::vector<std::int64_t>& columns)
      : source_(std::move(source)),
        info_(source_->info()),
        first_place_(static_cast<std::size_t>(info_.columns) + 1, 0) {
    for (const std::int64_t column : columns) ++first_place_[static_cast<std::size_t>(column) + 1];
    most_places_ = *std::max_element(first_place_.begin(), first_place_.end());
    for (std::size_t i = 1; i < first_place_.size(); ++i) first_place_[i] += first_place_[i - 1];
    places_.resize(columns.size());
    std::vector<std::int64_t> next = first_place_;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      places_[static_cast<std::size_t>(next[static_cast<std::size_t>(columns[i])]++)] = static_cast<std::int64_t>(i);
    }
    // as if every column held as many entries
    const double share =
        static_cast<double>(columns.size()) / static_cast<double>(std::max<std::int64_t>(1, info_.columns));
    info_.entries = static_cast<std::int64_t>(static_cast<double>(info_.entries) * share);
    info_.entry_pairs *= share * share;
    info_.columns = static_cast<std::int64_t>(columns.size());
    std::vector<std::string> names;
    if (!info_.column_names.empty()) {
      for (const std::int64_t column : columns) names.push_back(info_.column_names[static_cast<std::size_t>(column)]);
    }
    info_.column_names = std::move(names);
  }

  const SourceInfo& info() const override { return info_; }

  void prepare(const ReadingPlan& plan) override {
    source_->prepare(plan);
    info_.reader_bytes = source_->info().reader_bytes;
    info_.shared_bytes = source_->info().shared_bytes;
    info_.warnings = source_->info().warnings;
  }

  /// Entries come from the source's own buffer, each at most so many times as its column is wanted.
  std::size_t bytes_for(RowRange rows) const override {
    return source_->bytes_for(rows) * static_cast<std::size_t>(most_places_) + 256;
  }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    if (to.size() < bytes_for(rows)) throw std::length_error("a buffer too small for selected columns");
    const Scratch scratch(scratch_, std::max<std::size_t>(64, source_->bytes_for(rows)));
    const SourceRows read_rows = source_->read(rows, {scratch.data(), scratch.size()});
    const auto& all = std::get<CsrRows>(read_rows.rows);
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < all.row_start[rows.count]; ++k) kept += wanted(all.index[k]);
    const SparseLayout parts(rows.count, kept, info_.type);
    pick(all, parts, to);
    count_new_bytes();
    return {CsrRows{parts.row_start(to), parts.index(to), parts.value(to), info_.type, rows.count, info_.columns}, {}};
  }

 private:
  std::int64_t wanted(std::int64_t column) const {
    return first_place_[static_cast<std::size_t>(column) + 1] - first_place_[static_cast<std::size_t>(column)];
  }

  void pick(const CsrRows& all, const SparseLayout& parts, std::span<std::byte> to) const {
    std::int64_t *start = parts.row_start(to), *index = parts.index(to), done = 0;
    std::byte* value = parts.value(to);
    const auto width = static_cast<std::int64_t>(size_of(info_.type));
    for (std::int64_t row = 0; row < all.rows; ++row) {
      start[row] = done;
      for (std::int64_t k = all.row_start[row]; k < all.row_start[row + 1]; ++k) {
        for (std::int64_t at = first_place_[static_cast<std::size_t>(all.index[k])], n = wanted(all.index[k]); n > 0;
             --n, ++at) {
          index[done] = places_[static_cast<std::size_t>(at)];
          std::memcpy(value + done * width, all.value + k * width, static_cast<std::size_t>(width));
          ++done;
        }
      }
    }
    start[all.rows] = done;
    // sorts the rows again, if columns were wanted in another order
    SparseTidier(info_.name(), 0, info_.columns, info_.type)
        .tidy({start, static_cast<std::size_t>(all.rows) + 1}, index, value);
  }

  void count_new_bytes() {
    const std::scoped_lock lock(counted_mutex_);
    const std::int64_t now = source_->bytes_read();
    count_bytes(now - counted_);
    counted_ = now;
  }

  std::unique_ptr<Source> source_;
  SourceInfo info_;
  std::vector<std::int64_t> first_place_, places_;  ///< places of column c: places_[first_place_[c]] on
  std::int64_t most_places_ = 1;
  std::mutex counted_mutex_;
  std::int64_t counted_ = 0;
  MemoryPool scratch_;
};

}  // namespace

std::unique_ptr<Source> select_sparse_columns(std::unique_ptr<Source> source, std::vector<std::int64_t> columns) {
  return std::make_unique<SelectedSparseColumns>(std::move(source), columns);
}

}  // namespace rowmill
