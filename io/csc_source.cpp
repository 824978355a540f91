#include "io/csc_source.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "core/error.hpp"
#include "core/units.hpp"
#include "io/sparse_base.hpp"

namespace rowmill {

namespace {

class CscSource : public SparseSource {
 public:
  CscSource(const InputPlan& plan, SparseParts parts, std::int64_t memory_limit)
      : SparseSource(plan),
        width_(static_cast<std::int64_t>(size_of(plan.type))),
        memory_limit_(memory_limit),
        parts_(std::move(parts)),
        wanted_{0, info_.rows} {
    column_start_ = read_pointers(*parts_.pointers, parts_.indices->info().rows, info_.name(), "column");
    count_rows();
    count_entries();
    count_parts();
  }

  /// Each rank turns its own rows.
  void prepare(const ReadingPlan& plan) override {
    check_memory(plan.rows);
    wanted_ = plan.rows;
    is_held_ = false;
    index_ = {};
    value_ = {};
    info_.shared_bytes = bytes_to_hold(wanted_);
  }

 protected:
  void read_entries(RowRange rows, RowRange entries, const SparseLayout& parts, std::span<std::byte> to) override {
    if (rows.first < wanted_.first || rows.end() > wanted_.end()) {
      turn(rows, parts.index(to), parts.value(to));
      return;
    }
    hold();
    const std::int64_t first = entries.first - entries_of(wanted_).first;
    std::copy_n(index_.begin() + first, entries.count, parts.index(to));
    std::memcpy(parts.value(to), value_.data() + first * width_, static_cast<std::size_t>(entries.count * width_));
  }

 private:
  std::int64_t bytes_to_hold(RowRange rows) const { return entries_of(rows).count * (4 + width_) + rows.count * 8; }

  void check_memory(RowRange rows) const {
    const std::int64_t bytes = bytes_to_hold(rows);
    if (bytes <= memory_limit_ && info_.columns <= std::numeric_limits<std::uint32_t>::max()) return;
    refuse_sparse(info_.name(), "is stored by columns (CSC), and to turn this rank's " + counted(rows.count, "row") +
                                    " takes " + format_size(bytes) + " of memory, more than " +
                                    format_size(memory_limit_) +
                                    ": write it again by rows (CSR; in Python: adata.X = adata.X.tocsr()) or start "
                                    "more ranks");
  }

  void count_rows() {
    const std::int64_t entries = column_start_.back();
    std::vector<std::int64_t> wide(static_cast<std::size_t>(std::min(entries, sparse_piece_entries)));
    row_start_.assign(static_cast<std::size_t>(info_.rows) + 1, 0);
    in_pieces(*parts_.indices, entries, [&](std::int64_t first, const std::byte* from, std::int64_t n) {
      widen_integers(from, parts_.indices->info().type, n, wide.data());
      for (std::int64_t i = 0; i < n; ++i) {
        check_row(wide[static_cast<std::size_t>(i)], first + i);
        ++row_start_[static_cast<std::size_t>(wide[static_cast<std::size_t>(i)]) + 1];
      }
    });
    for (std::size_t row = 0; row + 1 < row_start_.size(); ++row) row_start_[row + 1] += row_start_[row];
  }

  void check_row(std::int64_t row, std::int64_t entry) const {
    if (row >= 0 && row < info_.rows) return;
    const auto after = std::upper_bound(column_start_.begin(), column_start_.end(), entry);
    refuse_sparse(info_.name(), "column " + std::to_string(after - column_start_.begin() - 1) + " has a value in row " +
                                    std::to_string(row) + ", its rows are 0 to " + std::to_string(info_.rows - 1) +
                                    ": the file is damaged");
  }

  void hold() {
    const std::scoped_lock lock(held_mutex_);
    if (is_held_) return;
    check_memory(wanted_);
    const auto entries = static_cast<std::size_t>(entries_of(wanted_).count);
    index_.resize(entries);
    value_.resize(entries * static_cast<std::size_t>(width_));
    turn(wanted_, index_.data(), value_.data());
    is_held_ = true;
  }

  /// The entries of these rows, row after row; columns ascend within a row since they are walked in order.
  template <typename Index>
  void turn(RowRange rows, Index* index, std::byte* value) {
    const RowRange wanted = entries_of(rows);
    std::vector<std::int64_t> next(row_start_.begin() + rows.first, row_start_.begin() + rows.end());
    std::int64_t column = 0, placed = 0;
    in_entries([&](std::int64_t entry, std::int64_t row, const std::byte* from) {
      while (column_start_[static_cast<std::size_t>(column) + 1] <= entry) ++column;
      check_row(row, entry);
      if (row < rows.first || row >= rows.end()) return;
      std::int64_t& at = next[static_cast<std::size_t>(row - rows.first)];
      if (at >= row_start_[static_cast<std::size_t>(row) + 1]) has_changed();
      index[at - wanted.first] = static_cast<Index>(column);
      std::memcpy(value + (at - wanted.first) * width_, from, static_cast<std::size_t>(width_));
      ++at;
      ++placed;
    });
    count_parts();
    if (placed != wanted.count) has_changed();
  }

  /// Since its rows were counted.
  [[noreturn]] void has_changed() const { refuse_sparse(info_.name(), "has changed while it was read: run again"); }

  /// Calls take(entry, row, bytes of the value) for all entries, in the order of the file.
  template <typename F>
  void in_entries(const F& take) {
    const std::int64_t entries = column_start_.back();
    const ElementType index_type = parts_.indices->info().type;
    const RowRange piece{0, std::min(entries, sparse_piece_entries)};
    std::vector<std::int64_t> row(static_cast<std::size_t>(piece.count));
    MemoryPool pool;
    const Scratch scratch(pool, std::max<std::size_t>(64, parts_.indices->bytes_for(piece)));
    in_pieces(*parts_.values, entries, [&](std::int64_t first, const std::byte* from, std::int64_t n) {
      parts_.indices->read({first, n}, {scratch.data(), scratch.size()});
      widen_integers(scratch.data(), index_type, n, row.data());
      for (std::int64_t i = 0; i < n; ++i) take(first + i, row[static_cast<std::size_t>(i)], from + i * width_);
    });
  }

  void count_parts() {
    count_bytes_of_parts(parts_.pointers->bytes_read() + parts_.indices->bytes_read() + parts_.values->bytes_read());
  }

  const std::int64_t width_, memory_limit_;
  SparseParts parts_;
  std::vector<std::int64_t> column_start_;
  RowRange wanted_;        ///< rows to hold
  std::mutex held_mutex_;  ///< guards what follows while it is made; nobody changes it afterwards
  bool is_held_ = false;
  std::vector<std::uint32_t> index_;
  std::vector<std::byte> value_;
};

}  // namespace

std::unique_ptr<Source> make_csc_source(const InputPlan& plan, SparseParts parts, std::int64_t memory_limit) {
  return std::make_unique<CscSource>(plan, std::move(parts), memory_limit);
}

}  // namespace rowmill
