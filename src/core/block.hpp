#pragma once
// Blocks: runs of rows, counted from row 0 of the source; and what a job is handed of one.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/dtype.hpp"
#include "core/matrix_view.hpp"

namespace rowmill {

/// A run of rows [first, first + count).
struct RowRange {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// Dense rows in the stored type: rows × columns, row-major, `stride` in elements.
struct DenseRows {
  const std::byte* data = nullptr;
  ElementType type;
  std::int64_t rows = 0, columns = 0, stride = 0;

  DenseRows middle_rows(std::int64_t first, std::int64_t count) const {
    return {data + first * stride * static_cast<std::int64_t>(size_of(type)), type, count, columns, stride};
  }
};

/// Sparse rows (CSR): row i holds entries row_start[i] … row_start[i + 1] - 1 of `index` (columns, ascending, unique)
/// and `value` (stored type). row_start has rows + 1 entries and begins at 0.
struct CsrRows {
  const std::int64_t* row_start = nullptr;
  const std::int64_t* index = nullptr;
  const std::byte* value = nullptr;
  ElementType type;
  std::int64_t rows = 0, columns = 0;
};

using Rows = std::variant<DenseRows, CsrRows>;

std::int64_t row_count(const Rows& rows);
std::int64_t column_count(const Rows& rows);
ElementType element_type(const Rows& rows);

/// The same views after their bytes were copied from a buffer at `from` to a buffer at `to`.
Rows rebase(const Rows& rows, const std::byte* from, const std::byte* to);
MaskView rebase(const MaskView& mask, const std::byte* from, const std::byte* to);

/// What a job is handed: aligned views of the same rows.
struct Block {
  std::int64_t id = 0;
  RowRange range;
  Rows x;
  std::optional<DenseRows> y, weights;
  std::optional<MaskView> missing;  ///< of x; NaN in floating types counts as missing besides
};

/// Blocks of `block_rows` rows, numbered from row 0 of the source; `rows` is the part that is milled, so that the first
/// and last block may be shorter. Depends on source, job and --block-rows alone: never on ranks, threads or memory.
class BlockGrid {
 public:
  BlockGrid() = default;
  /// Throws Error(usage) for block_rows < 1 or more than 2^31 - 1 blocks (the order-free sums hold that many).
  BlockGrid(RowRange rows, std::int64_t block_rows);

  std::int64_t first_id() const { return first_id_; }
  std::int64_t end_id() const { return end_id_; }
  std::int64_t count() const { return end_id_ - first_id_; }
  std::int64_t block_rows() const { return block_rows_; }
  RowRange rows() const { return rows_; }
  RowRange range(std::int64_t id) const;

 private:
  RowRange rows_;
  std::int64_t block_rows_ = 1, first_id_ = 0, end_id_ = 0;
};

/// The ordered block ids that one rank mills.
using Shard = std::vector<std::int64_t>;

/// How many blocks contiguous_shard gives a rank.
std::int64_t contiguous_count(const BlockGrid& grid, int rank, int ranks);

/// The rows of these blocks; none for a rank without blocks.
RowRange contiguous_rows(const BlockGrid& grid, int rank, int ranks);

/// Deals blocks in contiguous runs; the first (count mod ranks) ranks get one more. Ranks without blocks get none.
Shard contiguous_shard(const BlockGrid& grid, int rank, int ranks);

}  // namespace rowmill
