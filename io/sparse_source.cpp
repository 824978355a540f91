#include "io/sparse_source.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "core/error.hpp"
#include "core/pool.hpp"
#include "core/units.hpp"
#include "io/scratch.hpp"
#include "io/sparse_rows.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kPieceEntries = 1 << 17;
/// No file holds more, and sizes of blocks stay far from overflow.
constexpr std::int64_t kMaxEntries = std::int64_t{1} << 48;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(ExitCode::input, name + ": " + why);
}

/// Calls take(first entry, bytes of entries, count) for a source of one column, piece by piece.
template <typename F>
void in_pieces(Source& source, std::int64_t count, F&& take) {
  MemoryPool pool;
  const Scratch scratch(pool, std::max<std::size_t>(64, source.bytes_for({0, std::min(count, kPieceEntries)})));
  for (std::int64_t first = 0; first < count; first += kPieceEntries) {
    const std::int64_t entries = std::min(kPieceEntries, count - first);
    source.read({first, entries}, {scratch.data(), scratch.size()});
    take(first, scratch.data(), entries);
  }
}

/// The pointers as int64, which begin at 0, never decrease, and end within the entries.
std::vector<std::int64_t> read_pointers(Source& source, std::int64_t entries, const std::string& name,
                                        const char* line) {
  const std::int64_t count = source.info().rows;
  std::vector<std::int64_t> pointers(static_cast<std::size_t>(count));
  in_pieces(source, count, [&](std::int64_t first, const std::byte* from, std::int64_t n) {
    widen_integers(from, source.info().type, n, pointers.data() + first);
  });
  if (pointers[0] != 0) {
    refuse(name, "its first " + std::string(line) + " begins at entry " + std::to_string(pointers[0]) +
                     ", not at 0: its index pointers are damaged");
  }
  for (std::int64_t i = 0; i + 1 < count; ++i) {
    const std::int64_t begin = pointers[static_cast<std::size_t>(i)], end = pointers[static_cast<std::size_t>(i) + 1];
    const std::string where = std::string(line) + " " + std::to_string(i);
    if (end < begin) {
      const bool narrow = size_of(source.info().type) <= 4;
      refuse(name, where + " ends at entry " + std::to_string(end) + " before it begins, at " + std::to_string(begin) +
                       ": its index pointers are damaged" +
                       (narrow ? " or passed 32 bits when they were written: write them with 64 bits" : ""));
    }
    if (end > entries) {
      refuse(name, where + " ends at entry " + std::to_string(end) + ", but there are only " + std::to_string(entries) +
                       ": it is truncated or damaged");
    }
  }
  return pointers;
}

/// Rows that a storage chunk of values holds on average: blocks of fewer rows would decode each chunk several times.
SourceInfo sparse_info(const InputPlan& plan) {
  SourceInfo info = info_of(plan);
  info.storage_chunk_rows = 1;
  const InputPlan& values = plan.parts[2];
  if (plan.way == Way::csr && !values.chunk.empty() && values.rows() > 0) {
    const double share = static_cast<double>(values.chunk[0]) / static_cast<double>(values.rows());
    const double rows = std::ceil(share * static_cast<double>(plan.rows()));
    info.storage_chunk_rows = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(rows, 1e15)), 1,
                                                       std::max<std::int64_t>(1, plan.rows()));
  }
  return info;
}

class SparseSource : public Source {
 public:
  explicit SparseSource(const InputPlan& plan) : info_(sparse_info(plan)) {}
  const SourceInfo& info() const override { return info_; }

  std::size_t bytes_for(RowRange rows) const override { return layout(rows).bytes(); }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    if (rows.first < 0 || rows.count < 0 || rows.first > info_.rows || rows.count > info_.rows - rows.first) {
      throw std::out_of_range("rows outside " + info_.name());
    }
    const SparseLayout parts = layout(rows);
    if (to.size() < parts.bytes()) throw std::length_error("a buffer too small for rows of " + info_.name());
    std::int64_t* start = parts.row_start(to);
    const std::int64_t first = row_start_[static_cast<std::size_t>(rows.first)];
    for (std::int64_t i = 0; i <= rows.count; ++i)
      start[i] = row_start_[static_cast<std::size_t>(rows.first + i)] - first;
    if (start[rows.count] > 0) read_entries(rows, {first, start[rows.count]}, parts, to);
    SparseTidier(info_.name(), rows.first, info_.columns, info_.type)
        .tidy({start, static_cast<std::size_t>(rows.count) + 1}, parts.index(to), parts.value(to));
    return {CsrRows{start, parts.index(to), parts.value(to), info_.type, rows.count, info_.columns}, {}};
  }

 protected:
  /// A run of entries, at least one, into index and value of the buffer, as they are stored.
  virtual void read_entries(RowRange rows, RowRange entries, const SparseLayout& parts, std::span<std::byte> to) = 0;

  /// To be called when row_start_ is known.
  void count_entries() {
    info_.entries = row_start_.back();
    for (std::size_t row = 0; row + 1 < row_start_.size(); ++row) {
      const auto n = static_cast<double>(row_start_[row + 1] - row_start_[row]);
      info_.entry_pairs += n * (n + 1) / 2;
    }
  }

  SourceInfo info_;
  std::vector<std::int64_t> row_start_;

 private:
  SparseLayout layout(RowRange rows) const {
    const std::int64_t entries =
        row_start_[static_cast<std::size_t>(rows.end())] - row_start_[static_cast<std::size_t>(rows.first)];
    return {rows.count, entries, info_.type};
  }
};

class CsrSource : public SparseSource {
 public:
  CsrSource(const InputPlan& plan, SparseParts parts)
      : SparseSource(plan), indices_(std::move(parts.indices)), values_(std::move(parts.values)) {
    row_start_ = read_pointers(*parts.pointers, indices_->info().rows, info_.name(), "row");
    count_entries();
    count_memory();
    info_.read_elsewhere = indices_->info().read_elsewhere || values_->info().read_elsewhere;
    if (row_start_.back() < indices_->info().rows) {
      info_.warnings.push_back(info_.name() + ": " + std::to_string(indices_->info().rows - row_start_.back()) +
                               " entries behind its last row are not used");
    }
    count_bytes(parts.pointers->bytes_read());
  }

  /// Entries are asked for as rows are, in blocks of as many as rows hold on average.
  void prepare(const ReadingPlan& plan) override {
    const std::int64_t first = row_start_[static_cast<std::size_t>(plan.rows.first)];
    const RowRange entries{first, row_start_[static_cast<std::size_t>(plan.rows.end())] - first};
    if (entries.count == 0) return;
    const double share = static_cast<double>(plan.grid.block_rows()) / static_cast<double>(plan.rows.count);
    const double average = std::min(1.0, share) * static_cast<double>(entries.count);
    for (Source* source : {indices_.get(), values_.get()}) {
      const std::size_t said = source->info().warnings.size();
      std::int64_t block = std::max<std::int64_t>(1, static_cast<std::int64_t>(average));
      block = std::max(block, entries.end() / std::numeric_limits<std::int32_t>::max() + 1);
      // blocks do not end where storage chunks do, even if as many entries fit in them
      if (block % source->info().storage_chunk_rows == 0) ++block;
      source->prepare({BlockGrid(entries, block), entries, plan.memory_bytes / 2, plan.readers});
      const std::vector<std::string>& warnings = source->info().warnings;
      info_.warnings.insert(info_.warnings.end(), warnings.begin() + static_cast<std::ptrdiff_t>(said), warnings.end());
    }
    count_memory();
  }

 protected:
  void read_entries(RowRange rows, RowRange entries, const SparseLayout& parts, std::span<std::byte> to) override {
    try {
      const ElementType index_type = indices_->info().type;
      const std::span<std::byte> narrow = parts.narrow_index(to, size_of(index_type));
      indices_->read(entries, narrow);
      widen_integers(narrow.data(), index_type, entries.count, parts.index(to));
      values_->read(entries, parts.values(to));
    } catch (const Error& e) {
      // the parts' own messages count entries
      throw Error(e.code(), std::string(e.what()) + " (entries of rows " + std::to_string(rows.first) + " to " +
                                std::to_string(rows.end() - 1) + ")");
    }
    const std::scoped_lock lock(counted_mutex_);
    const std::int64_t now = indices_->bytes_read() + values_->bytes_read();
    count_bytes(now - counted_);
    counted_ = now;
  }

 private:
  void count_memory() {
    info_.reader_bytes = indices_->info().reader_bytes + values_->info().reader_bytes;
    info_.shared_bytes = indices_->info().shared_bytes + values_->info().shared_bytes;
  }

  std::unique_ptr<Source> indices_, values_;
  std::mutex counted_mutex_;
  std::int64_t counted_ = 0;
};

/// Columns are turned into rows once, when the source is opened, and held.
class CscSource : public SparseSource {
 public:
  CscSource(const InputPlan& plan, SparseParts parts, std::int64_t memory_limit)
      : SparseSource(plan), width_(static_cast<std::int64_t>(size_of(plan.type))) {
    const std::int64_t rows = info_.rows;
    std::vector<std::int64_t> column_start =
        read_pointers(*parts.pointers, parts.indices->info().rows, info_.name(), "column");
    const std::int64_t entries = column_start.back();
    check_memory(entries, memory_limit);
    const ElementType index_type = parts.indices->info().type;
    std::vector<std::int64_t> wide(static_cast<std::size_t>(std::min(entries, kPieceEntries)));
    row_start_.assign(static_cast<std::size_t>(rows) + 1, 0);
    in_pieces(*parts.indices, entries, [&](std::int64_t first, const std::byte* from, std::int64_t n) {
      widen_integers(from, index_type, n, wide.data());
      for (std::int64_t i = 0; i < n; ++i) {
        check_row(wide[static_cast<std::size_t>(i)], first + i, column_start);
        ++row_start_[static_cast<std::size_t>(wide[static_cast<std::size_t>(i)]) + 1];
      }
    });
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) row_start_[row + 1] += row_start_[row];
    count_entries();
    turn(parts, column_start);
    count_bytes(parts.pointers->bytes_read() + parts.indices->bytes_read() + parts.values->bytes_read());
  }

 protected:
  void read_entries(RowRange, RowRange entries, const SparseLayout& parts, std::span<std::byte> to) override {
    std::copy_n(index_.begin() + entries.first, entries.count, parts.index(to));
    std::memcpy(parts.value(to), value_.data() + entries.first * width_,
                static_cast<std::size_t>(entries.count * width_));
  }

 private:
  void check_memory(std::int64_t entries, std::int64_t memory_limit) const {
    const std::int64_t bytes = (entries + info_.columns) * (4 + width_) + info_.rows * 16;
    if (bytes <= memory_limit && info_.columns <= std::numeric_limits<std::uint32_t>::max()) return;
    refuse(info_.name(), "is stored by columns (CSC), and to turn it into rows takes " + format_size(bytes) +
                             " of memory in each rank, more than " + format_size(memory_limit) +
                             ": write it again by rows (CSR; in Python: adata.X = adata.X.tocsr())");
  }

  void check_row(std::int64_t row, std::int64_t entry, const std::vector<std::int64_t>& column_start) const {
    if (row >= 0 && row < info_.rows) return;
    const auto after = std::upper_bound(column_start.begin(), column_start.end(), entry);
    refuse(info_.name(), "column " + std::to_string(after - column_start.begin() - 1) + " has a value in row " +
                             std::to_string(row) + ", its rows are 0 to " + std::to_string(info_.rows - 1) +
                             ": the file is damaged");
  }

  /// Entries to their rows; columns ascend within a row since they are walked in order.
  void turn(SparseParts& parts, const std::vector<std::int64_t>& column_start) {
    const std::int64_t entries = column_start.back();
    std::vector<std::int64_t> next(row_start_.begin(), row_start_.end() - 1);
    std::vector<std::int64_t> place(static_cast<std::size_t>(entries > 0 ? std::min(entries, kPieceEntries) : 1));
    index_.resize(static_cast<std::size_t>(entries));
    value_.resize(static_cast<std::size_t>(entries * width_));
    MemoryPool pool;
    const RowRange piece{0, static_cast<std::int64_t>(place.size())};
    const Scratch scratch(pool, std::max<std::size_t>(64, parts.indices->bytes_for(piece)));
    std::int64_t column = 0;
    in_pieces(*parts.values, entries, [&](std::int64_t first, const std::byte* from, std::int64_t n) {
      parts.indices->read({first, n}, {scratch.data(), scratch.size()});
      widen_integers(scratch.data(), parts.indices->info().type, n, place.data());
      for (std::int64_t i = 0; i < n; ++i) {
        while (column_start[static_cast<std::size_t>(column) + 1] <= first + i) ++column;
        const std::int64_t row = place[static_cast<std::size_t>(i)];
        // the file may have changed since its rows were counted
        if (row < 0 || row >= info_.rows ||
            next[static_cast<std::size_t>(row)] >= row_start_[static_cast<std::size_t>(row) + 1]) {
          refuse(info_.name(), "has changed while it was read: run again");
        }
        const std::int64_t at = next[static_cast<std::size_t>(row)]++;
        index_[static_cast<std::size_t>(at)] = static_cast<std::uint32_t>(column);
        std::memcpy(value_.data() + at * width_, from + i * width_, static_cast<std::size_t>(width_));
      }
    });
  }

  std::int64_t width_;
  std::vector<std::uint32_t> index_;
  std::vector<std::byte> value_;
};

}  // namespace

void check_sparse_plan(const InputPlan& plan, std::int64_t memory_limit) {
  if (plan.parts.size() != 3 || plan.shape.size() != 2) refuse(plan.name(), "its parts make no sense");
  for (const InputPlan& part : plan.parts) {
    if (part.shape.size() != 1) refuse(part.name(), "it has more than one axis: it is no part of a sparse matrix");
  }
  const InputPlan &pointers = plan.parts[0], &indices = plan.parts[1], &values = plan.parts[2];
  for (const InputPlan* part : {&pointers, &indices}) {
    if (!is_integer(part->type.dtype)) refuse(part->name(), "its values are no integers: the file is damaged");
  }
  const bool by_columns = plan.way == Way::csc;
  const std::int64_t lines = by_columns ? plan.shape[1] : plan.shape[0];
  if (pointers.rows() - 1 != lines) {
    refuse(pointers.name(), "it has " + std::to_string(pointers.rows()) + " index pointers for " +
                                std::to_string(lines) + (by_columns ? " columns" : " rows") +
                                ", there should be one more than that: the file is damaged");
  }
  if (indices.rows() != values.rows()) {
    refuse(plan.name(), "it has " + std::to_string(indices.rows()) + " indices and " + std::to_string(values.rows()) +
                            " values: it is truncated or damaged");
  }
  const std::int64_t room = std::max(memory_limit, std::min(plan.file_bytes, std::int64_t{1} << 40) * 16);
  if (std::max(plan.shape[0], lines) > room / 8 - 1 || indices.rows() > kMaxEntries) {
    refuse(plan.name(), "it claims " + std::to_string(plan.shape[0]) + " rows and " + std::to_string(indices.rows()) +
                            " values in a file of " + format_size(plan.file_bytes) + ": it is damaged or hostile");
  }
}

std::unique_ptr<Source> make_sparse_source(const InputPlan& plan, SparseParts parts, std::int64_t memory_limit) {
  if (plan.way == Way::csc) return std::make_unique<CscSource>(plan, std::move(parts), memory_limit);
  return std::make_unique<CsrSource>(plan, std::move(parts));
}

}  // namespace rowmill
