#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/host/kernels.hpp"
#include "kernels/host/read_tile.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/host/strip.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/column_moments.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/host/load-inl.hpp"
#include "kernels/host/strip-inl.hpp"

// Sums run over tiles of rows and strips of 16 columns, tiles are added within groups of rows, and groups are added to
// the result: a chain of additions has hundreds of links where a plain loop has a million. Rows of fewer than 64
// columns that no strip divides are folded: 16 of them are taken as one row of 16 times the width, so that every vector
// is full. The order of additions is fixed by the numbers of rows and columns alone: not by the type, the byte order, a
// mask, the distance of rows or the width of vectors.
#ifndef ROWMILL_COLUMN_MOMENTS_ONCE
#define ROWMILL_COLUMN_MOMENTS_ONCE
namespace rowmill::host {
namespace {

constexpr std::int64_t window = 64;  ///< columns of neighbouring strips that are walked together

/// How rows are cut up.
struct Cut {
  std::int64_t folded_rows;  ///< rows taken as one: 1 or 16
  std::int64_t tile_rows;    ///< of these
  std::int64_t group_rows;   ///< as many as stay in the second-level cache while their strips are walked
};

Cut cut_of(std::int64_t columns) {
  const bool folded = columns < window && columns % strip != 0;
  const std::int64_t fold = folded ? 16 : 1, tile = folded ? 16 : 64;
  const std::int64_t rows = (std::int64_t{1} << 16) / (fold * std::max<std::int64_t>(columns, 1));
  return {fold, tile, std::clamp(rows / tile * tile, tile, std::int64_t{4096})};
}

/// Calls body(lane, column) for the columns of a strip that begins at element `first` of a (folded) row.
template <typename Body>
void for_each_lane(std::int64_t first, std::int64_t width, std::int64_t columns, Body body) {
  std::int64_t column = first % columns;
  for (std::int64_t lane = 0; lane < width; ++lane) {
    body(lane, column);
    if (++column == columns) column = 0;
  }
}

StripMap strip_map(const ColumnMap& map, std::int64_t first, std::int64_t width, std::int64_t columns) {
  StripMap result;
  result.scaled = map.scale != nullptr;
  for_each_lane(first, width, columns, [&](std::int64_t lane, std::int64_t column) {
    result.shift[lane] = map.shift == nullptr ? 0.0 : map.shift[column];
    result.scale[lane] = map.scale == nullptr ? 1.0 : map.scale[column];
  });
  std::fill(result.shift + width, result.shift + strip, result.shift[width - 1]);
  std::fill(result.scale + width, result.scale + strip, result.scale[width - 1]);
  return result;
}

/// Lane by lane, for strips that are not of 16 neighbouring columns.
void add_lane_by_lane(const StripSums& sums, std::int64_t first, std::int64_t width, std::int64_t columns,
                      const ColumnMoments& out) {
  for_each_lane(first, width, columns, [&](std::int64_t lane, std::int64_t column) {
    const auto missing = static_cast<std::int64_t>(sums.missing[lane]);
    out.count[column] += sums.rows - missing;
    out.missing[column] += missing;
    out.sum[column] += sums.sum[lane];
    out.second[column] += sums.second[lane];
    out.min[column] = std::min(out.min[column], sums.min[lane]);
    out.max[column] = std::max(out.max[column], sums.max[lane]);
  });
}

}  // namespace
}  // namespace rowmill::host
#endif

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
namespace {

void add_strip(const StripSums& sums, std::int64_t first, std::int64_t width, std::int64_t columns,
               const ColumnMoments& out) {
  if (width < strip || first + strip > columns) return add_lane_by_lane(sums, first, width, columns, out);
  const Doubles d;
  for (std::int64_t lane = 0; lane < strip; lane += hn::MaxLanes(d)) {
    const std::int64_t column = first + lane;
    const auto add = [&](double* to, const double* from) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, to + column), hn::LoadU(d, from + lane)), d, to + column);
    };
    add(out.sum, sums.sum);
    add(out.second, sums.second);
    hn::StoreU(hn::Min(hn::LoadU(d, out.min + column), hn::LoadU(d, sums.min + lane)), d, out.min + column);
    hn::StoreU(hn::Max(hn::LoadU(d, out.max + column), hn::LoadU(d, sums.max + lane)), d, out.max + column);
  }
  for (std::int64_t lane = 0; lane < strip; ++lane) out.count[first + lane] += sums.rows;
  if (!sums.any_missing) return;
  for (std::int64_t lane = 0; lane < strip; ++lane) {
    const auto missing = static_cast<std::int64_t>(sums.missing[lane]);
    out.count[first + lane] -= missing;
    out.missing[first + lane] += missing;
  }
}

/// rows × width elements as they lie, width a multiple of 16; element j of a row belongs to column j % columns.
template <typename T>
void plain_moments(const MatrixView<const T>& x, std::int64_t columns, const ColumnMap& map, const ColumnMoments& out) {
  const Cut cut = cut_of(columns);
  for (std::int64_t first = 0; first < x.rows; first += cut.group_rows) {
    const std::int64_t end = std::min(x.rows, first + cut.group_rows);
    // the next group, in the order that it lies: this one is walked in strips, which no processor foresees
    const auto* next = reinterpret_cast<const std::byte*>(x.row(end));
    const std::byte* const next_end = next + (std::min(x.rows, end + cut.group_rows) - end) * x.stride * sizeof(T);
    for (std::int64_t column = 0; column < x.cols; column += window) {
      const std::int64_t strips = std::min(window, x.cols - column) / strip;
      StripMap maps[window / strip];
      StripSums sums[window / strip];
      for (std::int64_t s = 0; s < strips; ++s) maps[s] = strip_map(map, column + s * strip, strip, columns);
      for (std::int64_t row = first; row < end; row += cut.tile_rows) {
        const std::int64_t rows = std::min(cut.tile_rows, end - row);
        for (std::int64_t s = 0; s < strips; ++s) {
          const bool more = next_end - next >= 64 * rows;
          add_tile(StripRows<T>{x.row(row) + column + s * strip, x.stride, rows, more ? next : nullptr}, maps[s],
                   sums[s]);
          if (more) next += 64 * rows;
        }
      }
      for (std::int64_t s = 0; s < strips; ++s) add_strip(sums[s], column + s * strip, strip, columns, out);
    }
  }
}

/// Part of a block that is not folded, by way of a buffer of doubles.
void tiled_moments(const Block& block, const Tile& part, const ColumnMap& map, const ColumnMoments& out) {
  constexpr std::int64_t most_rows = 64;
  HWY_ALIGN double buffer[most_rows * window];
  const std::int64_t columns = column_count(block.x);
  const Cut cut = cut_of(columns);
  const std::int64_t end_row = part.first_row + part.rows, end_column = part.first_column + part.columns;
  for (std::int64_t first = part.first_row; first < end_row; first += cut.group_rows) {
    const std::int64_t end = std::min(end_row, first + cut.group_rows);
    for (std::int64_t column = part.first_column; column < end_column; column += window) {
      const std::int64_t width = std::min(window, end_column - column);
      std::fill_n(buffer, most_rows * window, 0.0);
      StripMap maps[window / strip];
      StripSums sums[window / strip];
      for (std::int64_t s = 0; s * strip < width; ++s) {
        maps[s] = strip_map(map, column + s * strip, std::min(strip, width - s * strip), columns);
      }
      for (std::int64_t row = first; row < end; row += cut.tile_rows) {
        const std::int64_t rows = std::min(cut.tile_rows, end - row);
        read_tile(block, {row, rows, column, width}, buffer, window);
        for (std::int64_t s = 0; s * strip < width; ++s) {
          add_tile(StripRows<double>{buffer + s * strip, window, rows, nullptr}, maps[s], sums[s]);
        }
      }
      for (std::int64_t s = 0; s * strip < width; ++s) {
        add_strip(sums[s], column + s * strip, std::min(strip, width - s * strip), columns, out);
      }
    }
  }
}

/// The rows of a block that are folded, by way of a buffer of doubles.
void tiled_folded_moments(const Block& block, std::int64_t folded, const ColumnMap& map, const ColumnMoments& out) {
  constexpr std::int64_t most_columns = window - 1, most_rows = 16 * 16;
  HWY_ALIGN double buffer[most_rows * most_columns];
  const std::int64_t columns = column_count(block.x), width = columns * strip;
  const Cut cut = cut_of(columns);
  for (std::int64_t first = 0; first < folded; first += cut.group_rows) {
    const std::int64_t end = std::min(folded, first + cut.group_rows);
    StripSums sums[most_columns];  // a strip of the folded row for each column
    for (std::int64_t row = first; row < end; row += cut.tile_rows) {
      const std::int64_t rows = std::min(cut.tile_rows, end - row);
      read_tile(block, {row * cut.folded_rows, rows * cut.folded_rows, 0, columns}, buffer, columns);
      for (std::int64_t s = 0; s < columns; ++s) {
        const StripMap strip_values = strip_map(map, s * strip, strip, columns);
        add_tile(StripRows<double>{buffer + s * strip, width, rows, nullptr}, strip_values, sums[s]);
      }
    }
    for (std::int64_t s = 0; s < columns; ++s) add_strip(sums[s], s * strip, strip, columns, out);
  }
}

/// What can be read as it lies; returns the part that is left for the buffers: its first row and first column.
template <typename T>
Tile dense_moments(const DenseRows& dense, const T* data, const ColumnMap& map, const ColumnMoments& out) {
  const Cut cut = cut_of(dense.columns);
  if (cut.folded_rows == 1) {
    const std::int64_t whole = dense.columns / strip * strip;
    plain_moments(MatrixView<const T>{data, dense.rows, whole, dense.stride}, dense.columns, map, out);
    return {0, dense.rows, whole, dense.columns - whole};
  }
  if (dense.stride != dense.columns) return {0, dense.rows, 0, dense.columns};
  const std::int64_t folded = dense.rows / cut.folded_rows, width = cut.folded_rows * dense.columns;
  plain_moments(MatrixView<const T>{data, folded, width, width}, dense.columns, map, out);
  return {folded * cut.folded_rows, dense.rows % cut.folded_rows, 0, dense.columns};
}

void all_moments(const Block& block, ColumnMap map, ColumnMoments out) {
  Tile rest{0, row_count(block.x), 0, column_count(block.x)};
  with_plain_data(
      block, [&](const auto* data) HWY_ATTR { rest = dense_moments(std::get<DenseRows>(block.x), data, map, out); });
  const std::int64_t folded_rows = cut_of(column_count(block.x)).folded_rows;
  if (folded_rows > 1 && rest.rows >= folded_rows) {
    const std::int64_t folded = rest.rows / folded_rows;
    tiled_folded_moments(block, folded, map, out);
    rest = {folded * folded_rows, rest.rows % folded_rows, 0, rest.columns};
  }
  if (rest.rows > 0 && rest.columns > 0) tiled_moments(block, rest, map, out);
}

}  // namespace
}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowmill::host {

HWY_EXPORT(all_moments);

namespace {

/// Sparse rows are added up in one chain a column, if it is not too long: at most 2^17 links. Blocks are lower than
/// that unless --block-rows says otherwise.
bool by_entries(const Block& block) {
  constexpr std::int64_t longest = 1 << 17;
  return std::holds_alternative<CsrRows>(block.x) && !block.missing && row_count(block.x) <= longest;
}

}  // namespace

void column_moments(const Block& block, ColumnMap map, ColumnMoments out) {
  const std::int64_t columns = column_count(block.x);
  std::fill_n(out.count, columns, 0);
  std::fill_n(out.missing, columns, 0);
  std::fill_n(out.sum, columns, 0.0);
  std::fill_n(out.second, columns, 0.0);
  std::fill_n(out.min, columns, std::numeric_limits<double>::infinity());
  std::fill_n(out.max, columns, -std::numeric_limits<double>::infinity());
  if (by_entries(block)) {
    sparse_moments(block, map, out);
  } else {
    HWY_DYNAMIC_DISPATCH(all_moments)(block, map, out);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    // zeros without a sign, so that the least of -0 and +0 does not depend on which comes first
    out.min[j] += 0.0;
    out.max[j] += 0.0;
  }
}

}  // namespace rowmill::host
#endif
