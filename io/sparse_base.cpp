#include "io/sparse_base.hpp"

#include <cmath>
#include <stdexcept>

#include "core/error.hpp"

namespace rowmill {

namespace {

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

}  // namespace

void refuse_sparse(const std::string& name, const std::string& why) {
  throw Error(ExitCode::input, name + ": " + why);
}

std::vector<std::int64_t> read_pointers(Source& source, std::int64_t entries, const std::string& name,
                                        const char* line) {
  const std::int64_t count = source.info().rows;
  std::vector<std::int64_t> pointers(static_cast<std::size_t>(count));
  in_pieces(source, count, [&](std::int64_t first, const std::byte* from, std::int64_t n) {
    widen_integers(from, source.info().type, n, pointers.data() + first);
  });
  if (pointers[0] != 0) {
    refuse_sparse(name, "its first " + std::string(line) + " begins at entry " + std::to_string(pointers[0]) +
                            ", not at 0: its index pointers are damaged");
  }
  for (std::int64_t i = 0; i + 1 < count; ++i) {
    const std::int64_t begin = pointers[static_cast<std::size_t>(i)], end = pointers[static_cast<std::size_t>(i) + 1];
    const std::string where = std::string(line) + " " + std::to_string(i);
    if (end < begin) {
      const bool narrow = size_of(source.info().type) <= 4;
      refuse_sparse(name, where + " ends at entry " + std::to_string(end) + " before it begins, at " +
                              std::to_string(begin) + ": its index pointers are damaged" +
                              (narrow ? " or passed 32 bits when they were written: write them with 64 bits" : ""));
    }
    if (end > entries) {
      refuse_sparse(name, where + " ends at entry " + std::to_string(end) + ", but there are only " +
                              std::to_string(entries) + ": it is truncated or damaged");
    }
  }
  return pointers;
}

SparseSource::SparseSource(const InputPlan& plan) : info_(sparse_info(plan)) {}

SourceRows SparseSource::read(RowRange rows, std::span<std::byte> to) {
  if (rows.first < 0 || rows.count < 0 || rows.first > info_.rows || rows.count > info_.rows - rows.first) {
    throw std::out_of_range("rows outside " + info_.name());
  }
  const SparseLayout parts = layout(rows);
  if (to.size() < parts.bytes()) throw std::length_error("a buffer too small for rows of " + info_.name());
  std::int64_t* start = parts.row_start(to);
  const RowRange entries = entries_of(rows);
  for (std::int64_t i = 0; i <= rows.count; ++i)
    start[i] = row_start_[static_cast<std::size_t>(rows.first + i)] - entries.first;
  if (entries.count > 0) read_entries(rows, entries, parts, to);
  SparseTidier(info_.name(), rows.first, info_.columns, info_.type)
      .tidy({start, static_cast<std::size_t>(rows.count) + 1}, parts.index(to), parts.value(to));
  return {CsrRows{start, parts.index(to), parts.value(to), info_.type, rows.count, info_.columns}, {}};
}

RowRange SparseSource::entries_of(RowRange rows) const {
  const std::int64_t first = row_start_[static_cast<std::size_t>(rows.first)];
  return {first, row_start_[static_cast<std::size_t>(rows.end())] - first};
}

void SparseSource::count_entries() {
  info_.entries = row_start_.back();
  for (std::size_t row = 0; row + 1 < row_start_.size(); ++row) {
    const auto n = static_cast<double>(row_start_[row + 1] - row_start_[row]);
    info_.entry_pairs += n * (n + 1) / 2;
  }
}

void SparseSource::count_bytes_of_parts(std::int64_t so_far) {
  const std::scoped_lock lock(counted_mutex_);
  if (so_far <= counted_) return;  // another thread has counted what it read since
  count_bytes(so_far - counted_);
  counted_ = so_far;
}

}  // namespace rowmill
