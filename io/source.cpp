#include "io/source.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "core/error.hpp"
#include "core/pool.hpp"
#include "core/units.hpp"
#include "io/read_file.hpp"
#include "io/scratch.hpp"
#include "io/sparse_columns.hpp"

namespace rowmill {

namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

class SelectedColumns : public Source {
 public:
  SelectedColumns(std::unique_ptr<Source> source, std::vector<std::int64_t> columns)
      : source_(std::move(source)), columns_(std::move(columns)), info_(source_->info()) {
    width_ = size_of(info_.type);
    const auto inner_columns = static_cast<std::size_t>(info_.columns);
    // a source that asks for room beside its values may deliver a mask
    may_mask_ = source_->bytes_for({0, 64}) >= 64 * inner_columns * (width_ + 1);
    info_.columns = static_cast<std::int64_t>(columns_.size());
    slice_rows_ = rows_of_slice();
    if (!info_.column_names.empty()) {
      std::vector<std::string> names;
      for (const std::int64_t column : columns_) names.push_back(info_.column_names[static_cast<std::size_t>(column)]);
      info_.column_names = std::move(names);
    }
  }

  const SourceInfo& info() const override { return info_; }
  void check_unchanged() const override { source_->check_unchanged(); }

  void prepare(const ReadingPlan& plan) override {
    source_->prepare(plan);
    slice_rows_ = rows_of_slice();
    info_.reader_bytes = source_->info().reader_bytes;
    if (info_.reader_bytes > 0) {
      const std::int64_t most = std::min({slice_rows_, plan.grid.block_rows(), info_.rows});
      info_.reader_bytes += static_cast<std::int64_t>(source_->bytes_for({0, most}));
    }
    info_.shared_bytes = source_->info().shared_bytes;
    info_.warnings = source_->info().warnings;
  }

  std::size_t bytes_for(RowRange rows) const override {
    const std::size_t elements = static_cast<std::size_t>(rows.count) * columns_.size();
    return padded(elements * width_) + (may_mask_ ? padded(elements) : 0);
  }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    if (to.size() < bytes_for(rows)) throw std::length_error("a buffer too small for selected columns");
    const std::int64_t columns = info_.columns;
    const std::size_t mask_at = padded(static_cast<std::size_t>(rows.count * columns) * width_);
    SourceRows result{DenseRows{to.data(), info_.type, rows.count, columns, columns}, {}};
    for (std::int64_t first = rows.first; first < rows.end();) {
      const std::int64_t end = std::min(rows.end(), end_of_slice(first));
      const RowRange slice{first, end - first};
      const Scratch scratch(scratch_, source_->bytes_for(slice));
      const SourceRows all = source_->read(slice, {scratch.data(), scratch.size()});
      const auto* dense = &std::get<DenseRows>(all.rows);
      const std::int64_t done = (first - rows.first) * columns;
      pick(dense->data, dense->stride, slice.count, width_, to.data() + static_cast<std::size_t>(done) * width_);
      if (all.missing) {
        std::byte* mask = to.data() + mask_at;
        pick(reinterpret_cast<const std::byte*>(all.missing->data), all.missing->stride, slice.count, 1, mask + done);
        result.missing = MaskView{reinterpret_cast<const std::uint8_t*>(mask), rows.count, columns, columns};
      }
      first = end;
    }
    count_new_bytes();
    return result;
  }

 private:
  /// Other threads read from the same source meanwhile.
  void count_new_bytes() {
    const std::scoped_lock lock(counted_mutex_);
    const std::int64_t now = source_->bytes_read();
    count_bytes(now - counted_);
    counted_ = now;
  }

  /// Slices small enough for the cache, but of whole storage chunks where they are decoded.
  std::int64_t rows_of_slice() const {
    const auto row_bytes = std::max<std::size_t>(1, source_->bytes_for({0, 1}));
    const bool decoded = source_->info().reader_bytes > 0;
    const std::int64_t chunk = decoded ? std::max<std::int64_t>(1, info_.storage_chunk_rows) : 1;
    return chunk * std::max<std::int64_t>(1, static_cast<std::int64_t>((1U << 20) / row_bytes) / chunk);
  }

  /// Storage chunks are counted from the first row of their file.
  std::int64_t end_of_slice(std::int64_t row) const {
    const auto& files = info_.files;
    const auto after = std::upper_bound(files.begin(), files.end(), row,
                                        [](std::int64_t wanted, const SourceFile& f) { return wanted < f.first_row; });
    const std::int64_t first = after == files.begin() ? 0 : std::prev(after)->first_row;
    const std::int64_t end = after == files.end() ? info_.rows : after->first_row;
    return std::min(end, first + ((row - first) / slice_rows_ + 1) * slice_rows_);
  }

  void pick(const std::byte* from, std::int64_t stride, std::int64_t rows, std::size_t width, std::byte* to) const {
    switch (width) {
      case 1:
        return pick_as<std::uint8_t>(from, stride, rows, to);
      case 2:
        return pick_as<std::uint16_t>(from, stride, rows, to);
      case 4:
        return pick_as<std::uint32_t>(from, stride, rows, to);
      default:
        return pick_as<std::uint64_t>(from, stride, rows, to);
    }
  }

  template <typename T>
  void pick_as(const std::byte* from, std::int64_t stride, std::int64_t rows, std::byte* to) const {
    const auto* row = reinterpret_cast<const T*>(from);
    auto* place = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < rows; ++i, row += stride) {
      for (const std::int64_t column : columns_) *place++ = row[column];
    }
  }

  std::unique_ptr<Source> source_;
  std::vector<std::int64_t> columns_;
  SourceInfo info_;
  std::size_t width_ = 0;
  bool may_mask_ = false;
  std::int64_t slice_rows_ = 1;
  std::mutex counted_mutex_;
  std::int64_t counted_ = 0;
  MemoryPool scratch_;
};

bool is_sparse(Source& source) {
  const std::size_t bytes = std::max<std::size_t>(64, source.bytes_for({0, 0}));
  MemoryPool pool;
  const Scratch scratch(pool, bytes);
  return std::holds_alternative<CsrRows>(source.read({0, 0}, {scratch.data(), bytes}).rows);
}

void check_pair(const Source& x, Source& other, const char* role) {
  if (is_sparse(other)) {
    throw Error(ExitCode::input, std::string(role) + " " + other.info().name() + " is sparse: it must be dense");
  }
  if (x.info().rows == other.info().rows) return;
  throw Error(ExitCode::input, x.info().name() + " has " + counted(x.info().rows, "row") + ", " + role + " " +
                                   other.info().name() + " has " + grouped(other.info().rows) +
                                   ": they must have the same");
}

}  // namespace

RowPlace place_of_row(const SourceInfo& info, std::int64_t row) {
  const auto after =
      std::upper_bound(info.files.begin(), info.files.end(), row,
                       [](std::int64_t wanted, const SourceFile& file) { return wanted < file.first_row; });
  if (after == info.files.begin()) return {info.name(), row};
  return {std::prev(after)->name(), row - std::prev(after)->first_row};
}

void Source::check_unchanged() const {
  const SourceInfo& source = info();
  if (source.modified_ns == 0) return;  // made in memory
  ReadFile::check_unchanged(source.path, source.name(), source.file_bytes, source.modified_ns);
}

void check_aligned(const SourceSet& sources) {
  if (sources.y != nullptr) check_pair(*sources.x, *sources.y, "y");
  if (sources.weights != nullptr) check_pair(*sources.x, *sources.weights, "weights");
}

std::unique_ptr<Source> select_columns(std::unique_ptr<Source> source, std::vector<std::int64_t> columns) {
  const SourceInfo& info = source->info();
  for (const std::int64_t column : columns) {
    if (column < 0 || column >= info.columns) {
      throw Error(ExitCode::usage, info.name() + ": has no column " + std::to_string(column) +
                                       ", its columns are 0 to " + std::to_string(info.columns - 1));
    }
  }
  if (columns.empty()) throw Error(ExitCode::usage, "no columns are selected");
  if (is_sparse(*source)) return select_sparse_columns(std::move(source), std::move(columns));
  return std::make_unique<SelectedColumns>(std::move(source), std::move(columns));
}

}  // namespace rowmill
