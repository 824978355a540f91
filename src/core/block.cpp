#include "core/block.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace rowmill {

std::int64_t row_count(const Rows& rows) {
  return std::visit([](const auto& r) { return r.rows; }, rows);
}

std::int64_t column_count(const Rows& rows) {
  return std::visit([](const auto& r) { return r.columns; }, rows);
}

ElementType element_type(const Rows& rows) {
  return std::visit([](const auto& r) { return r.type; }, rows);
}

namespace {

template <typename T>
const T* moved(const T* pointer, const std::byte* from, const std::byte* to) {
  return reinterpret_cast<const T*>(to + (reinterpret_cast<const std::byte*>(pointer) - from));
}

}  // namespace

Rows rebase(const Rows& rows, const std::byte* from, const std::byte* to) {
  if (const auto* dense = std::get_if<DenseRows>(&rows)) {
    DenseRows copy = *dense;
    copy.data = moved(dense->data, from, to);
    return copy;
  }
  CsrRows copy = std::get<CsrRows>(rows);
  copy.row_start = moved(copy.row_start, from, to);
  copy.index = moved(copy.index, from, to);
  copy.value = moved(copy.value, from, to);
  return copy;
}

MaskView rebase(const MaskView& mask, const std::byte* from, const std::byte* to) {
  return {moved(mask.data, from, to), mask.rows, mask.cols, mask.stride};
}

BlockGrid::BlockGrid(RowRange rows, std::int64_t block_rows) : rows_(rows), block_rows_(block_rows) {
  if (block_rows < 1) throw Error(ExitCode::usage, "--block-rows must be at least 1");
  first_id_ = rows.first / block_rows;
  end_id_ = rows.count == 0 ? first_id_ : (rows.end() - 1) / block_rows + 1;
  if (count() > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ExitCode::usage, "more than 2147483647 blocks: choose larger --block-rows");
  }
}

RowRange BlockGrid::range(std::int64_t id) const {
  const std::int64_t first = std::max(rows_.first, id * block_rows_);
  const std::int64_t end = std::min(rows_.end(), (id + 1) * block_rows_);
  return {first, end - first};
}

std::int64_t contiguous_count(const BlockGrid& grid, int rank, int ranks) {
  return grid.count() / ranks + (rank < grid.count() % ranks ? 1 : 0);
}

namespace {

std::int64_t contiguous_first(const BlockGrid& grid, int rank, int ranks) {
  const std::int64_t each = grid.count() / ranks, more = grid.count() % ranks;
  return grid.first_id() + each * rank + std::min<std::int64_t>(rank, more);
}

}  // namespace

RowRange contiguous_rows(const BlockGrid& grid, int rank, int ranks) {
  const std::int64_t first = contiguous_first(grid, rank, ranks), count = contiguous_count(grid, rank, ranks);
  if (count == 0) return {};
  const std::int64_t first_row = grid.range(first).first;
  return {first_row, grid.range(first + count - 1).end() - first_row};
}

Shard contiguous_shard(const BlockGrid& grid, int rank, int ranks) {
  const std::int64_t first = contiguous_first(grid, rank, ranks);
  Shard shard(static_cast<std::size_t>(contiguous_count(grid, rank, ranks)));
  for (std::size_t i = 0; i < shard.size(); ++i) shard[i] = first + static_cast<std::int64_t>(i);
  return shard;
}

}  // namespace rowmill
