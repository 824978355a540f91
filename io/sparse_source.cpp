#include "io/sparse_source.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/units.hpp"
#include "io/csc_source.hpp"
#include "io/sparse_base.hpp"

namespace rowmill {

namespace {

/// No file holds more, and sizes of blocks stay far from overflow.
constexpr std::int64_t kMaxEntries = std::int64_t{1} << 48;

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
    const RowRange entries = entries_of(plan.rows);
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
    count_bytes_of_parts(indices_->bytes_read() + values_->bytes_read());
  }

 private:
  void count_memory() {
    info_.reader_bytes = indices_->info().reader_bytes + values_->info().reader_bytes;
    info_.shared_bytes = indices_->info().shared_bytes + values_->info().shared_bytes;
  }

  std::unique_ptr<Source> indices_, values_;
};

}  // namespace

void check_sparse_plan(const InputPlan& plan, std::int64_t memory_limit) {
  if (plan.parts.size() != 3 || plan.shape.size() != 2) refuse_sparse(plan.name(), "its parts make no sense");
  for (const InputPlan& part : plan.parts) {
    if (part.shape.size() != 1)
      refuse_sparse(part.name(), "it has more than one axis: it is no part of a sparse matrix");
  }
  const InputPlan &pointers = plan.parts[0], &indices = plan.parts[1], &values = plan.parts[2];
  for (const InputPlan* part : {&pointers, &indices}) {
    if (!is_integer(part->type.dtype)) refuse_sparse(part->name(), "its values are no integers: the file is damaged");
  }
  const bool by_columns = plan.way == Way::csc;
  const std::int64_t lines = by_columns ? plan.shape[1] : plan.shape[0];
  if (pointers.rows() - 1 != lines) {
    refuse_sparse(pointers.name(), "it has " + std::to_string(pointers.rows()) + " index pointers for " +
                                       std::to_string(lines) + (by_columns ? " columns" : " rows") +
                                       ", there should be one more than that: the file is damaged");
  }
  if (indices.rows() != values.rows()) {
    refuse_sparse(plan.name(), "it has " + std::to_string(indices.rows()) + " indices and " +
                                   std::to_string(values.rows()) + " values: it is truncated or damaged");
  }
  const std::int64_t room = std::max(memory_limit, std::min(plan.file_bytes, std::int64_t{1} << 40) * 16);
  if (std::max(plan.shape[0], lines) > room / 8 - 1 || indices.rows() > kMaxEntries) {
    refuse_sparse(plan.name(), "it claims " + std::to_string(plan.shape[0]) + " rows and " +
                                   std::to_string(indices.rows()) + " values in a file of " +
                                   format_size(plan.file_bytes) + ": it is damaged or hostile");
  }
}

std::unique_ptr<Source> make_sparse_source(const InputPlan& plan, SparseParts parts, std::int64_t memory_limit) {
  if (plan.way == Way::csc) return make_csc_source(plan, std::move(parts), memory_limit);
  return std::make_unique<CsrSource>(plan, std::move(parts));
}

}  // namespace rowmill
