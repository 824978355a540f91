#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/host/kernels.hpp"
#include "kernels/host/read_tile.hpp"
#include "kernels/host/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/column_moments.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/host/load-inl.hpp"

// Sums run over tiles of 64 rows and strips of 16 columns, tiles are added within groups of rows, and groups are added
// to the result: a chain of additions has hundreds of links where a plain loop has a million. The order of additions is
// fixed by the block's shape and type alone, not by the width of vectors.
#ifndef ROWMILL_COLUMN_MOMENTS_ONCE
#define ROWMILL_COLUMN_MOMENTS_ONCE
namespace rowmill::host {
namespace {

constexpr std::int64_t tile_rows = 64, strip = 16, window = 64;

/// Rows of a group: as many as stay in the second-level cache while their strips are walked.
std::int64_t group_rows(std::int64_t row_bytes) {
  const std::int64_t rows = (std::int64_t{1} << 18) / std::max<std::int64_t>(row_bytes, 1);
  return std::clamp(rows / tile_rows * tile_rows, tile_rows, std::int64_t{4096});
}

/// What is known of a strip; lanes are columns.
struct StripSums {
  double sum[strip] = {}, second[strip] = {}, missing[strip] = {}, min[strip], max[strip];
  std::int64_t rows = 0;

  StripSums() {
    std::fill_n(min, strip, std::numeric_limits<double>::infinity());
    std::fill_n(max, strip, -std::numeric_limits<double>::infinity());
  }
};

struct StripMap {
  double shift[strip], scale[strip];
};

StripMap strip_map(const ColumnMap& map, std::int64_t first, std::int64_t width, std::int64_t columns) {
  StripMap result;
  for (std::int64_t lane = 0; lane < strip; ++lane) {
    const std::int64_t column = (first + std::min(lane, width - 1)) % columns;
    result.shift[lane] = map.shift == nullptr ? 0.0 : map.shift[column];
    result.scale[lane] = map.scale == nullptr ? 1.0 : map.scale[column];
  }
  return result;
}

void add_strip(const StripSums& sums, std::int64_t first, std::int64_t width, std::int64_t columns,
               const ColumnMoments& out) {
  for (std::int64_t lane = 0; lane < width; ++lane) {
    const std::int64_t column = (first + lane) % columns;
    const auto missing = static_cast<std::int64_t>(sums.missing[lane]);
    out.count[column] += sums.rows - missing;
    out.missing[column] += missing;
    out.sum[column] += sums.sum[lane];
    out.second[column] += sums.second[lane];
    out.min[column] = std::min(out.min[column], sums.min[lane]);
    out.max[column] = std::max(out.max[column], sums.max[lane]);
  }
}

}  // namespace
}  // namespace rowmill::host
#endif

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
namespace {

template <typename T>
constexpr bool may_be_nan = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                            std::is_same_v<T, hwy::float16_t> || std::is_same_v<T, hwy::bfloat16_t>;

/// A strip of at most 64 rows as they lie; `ahead` elements further on is what will be wanted next.
template <typename T>
struct StripRows {
  const T* data;
  std::int64_t stride, rows, ahead;
};

/// Adds one vector's lanes of a tile to `sums`. With kMasked, NaN are skipped and counted; without, the return value
/// says whether one was met (`sums` is then left alone).
template <bool kMasked, typename T>
HWY_INLINE bool tile_lanes(const StripRows<T>& rows, const StripMap& map, std::size_t lane, StripSums& sums) {
  const Doubles d;
  const auto infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const auto shift = hn::LoadU(d, map.shift + lane), scale = hn::LoadU(d, map.scale + lane);
  auto sum = hn::Zero(d), second = hn::Zero(d), missing = hn::Zero(d);
  auto min = infinity, max = hn::Neg(infinity);
  auto nan = hn::Ne(sum, sum);
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const T* const from = rows.data + i * rows.stride + lane;
    if (lane == 0 && rows.ahead != 0) hwy::Prefetch(from + rows.ahead);
    const auto x = load_doubles(d, from);
    auto w = hn::Mul(hn::Sub(x, shift), scale);
    if constexpr (kMasked) {
      const auto missed = hn::Ne(x, x);
      w = hn::IfThenZeroElse(missed, w);
      missing = hn::Add(missing, hn::IfThenElseZero(missed, hn::Set(d, 1.0)));
      min = hn::Min(min, hn::IfThenElse(missed, infinity, x));
      max = hn::Max(max, hn::IfThenElse(missed, hn::Neg(infinity), x));
    } else {
      if constexpr (may_be_nan<T>) nan = hn::Or(nan, hn::Ne(x, x));
      min = hn::Min(min, x);
      max = hn::Max(max, x);
    }
    sum = hn::Add(sum, w);
    second = hn::MulAdd(w, w, second);
  }
  if (may_be_nan<T> && !kMasked && !hn::AllFalse(d, nan)) return true;
  hn::StoreU(hn::Add(hn::LoadU(d, sums.sum + lane), sum), d, sums.sum + lane);
  hn::StoreU(hn::Add(hn::LoadU(d, sums.second + lane), second), d, sums.second + lane);
  hn::StoreU(hn::Add(hn::LoadU(d, sums.missing + lane), missing), d, sums.missing + lane);
  hn::StoreU(hn::Min(hn::LoadU(d, sums.min + lane), min), d, sums.min + lane);
  hn::StoreU(hn::Max(hn::LoadU(d, sums.max + lane), max), d, sums.max + lane);
  return false;
}

template <typename T>
HWY_INLINE void add_tile(const StripRows<T>& rows, const StripMap& map, StripSums& sums) {
  for (std::size_t lane = 0; lane < strip; lane += hn::Lanes(Doubles())) {
    if (tile_lanes<false>(rows, map, lane, sums)) tile_lanes<true>(rows, map, lane, sums);
  }
  sums.rows += rows.rows;
}

/// rows × width elements as they lie, width a multiple of 16; element j of a row belongs to column j % columns.
template <typename T>
void plain_moments(const T* data, std::int64_t stride, std::int64_t rows, std::int64_t width, std::int64_t columns,
                   const ColumnMap& map, const ColumnMoments& out) {
  const std::int64_t group = group_rows(stride * static_cast<std::int64_t>(sizeof(T)));
  for (std::int64_t first = 0; first < rows; first += group) {
    const std::int64_t end = std::min(rows, first + group);
    const std::int64_t ahead = end + group <= rows ? group * stride : 0;
    for (std::int64_t column = 0; column < width; column += strip) {
      const StripMap strip_values = strip_map(map, column, strip, columns);
      StripSums sums;
      for (std::int64_t row = first; row < end; row += tile_rows) {
        const std::int64_t count = std::min(tile_rows, end - row);
        add_tile(StripRows<T>{data + row * stride + column, stride, count, ahead}, strip_values, sums);
      }
      add_strip(sums, column, strip, columns, out);
    }
  }
}

/// Part of a block by way of a buffer of doubles.
void tiled_moments(const Block& block, const Tile& part, const ColumnMap& map, const ColumnMoments& out) {
  HWY_ALIGN double buffer[tile_rows * window];
  const std::int64_t columns = column_count(block.x), group = group_rows(part.columns * 8);
  const std::int64_t end_row = part.first_row + part.rows, end_column = part.first_column + part.columns;
  for (std::int64_t first = part.first_row; first < end_row; first += group) {
    const std::int64_t end = std::min(end_row, first + group);
    for (std::int64_t column = part.first_column; column < end_column; column += window) {
      const std::int64_t width = std::min(window, end_column - column);
      std::fill_n(buffer, tile_rows * window, 0.0);
      StripSums sums[window / strip];
      for (std::int64_t row = first; row < end; row += tile_rows) {
        const std::int64_t count = std::min(tile_rows, end - row);
        read_tile(block, {row, count, column, width}, buffer, window);
        for (std::int64_t s = 0; s * strip < width; ++s) {
          const StripMap strip_values = strip_map(map, column + s * strip, std::min(strip, width - s * strip), columns);
          add_tile(StripRows<double>{buffer + s * strip, window, count, 0}, strip_values, sums[s]);
        }
      }
      for (std::int64_t s = 0; s * strip < width; ++s) {
        add_strip(sums[s], column + s * strip, std::min(strip, width - s * strip), columns, out);
      }
    }
  }
}

/// Narrow rows without gaps are read 16 at a time as one row of 16 · columns elements, so that every vector is full.
template <typename T>
void dense_moments(const Block& block, const T* data, const ColumnMap& map, const ColumnMoments& out) {
  const auto& dense = std::get<DenseRows>(block.x);
  if (dense.columns <= window && dense.stride == dense.columns && dense.columns % strip != 0) {
    const std::int64_t folded = dense.rows / strip, width = strip * dense.columns;
    plain_moments(data, width, folded, width, dense.columns, map, out);
    tiled_moments(block, {folded * strip, dense.rows % strip, 0, dense.columns}, map, out);
  } else {
    const std::int64_t whole = dense.columns / strip * strip;
    plain_moments(data, dense.stride, dense.rows, whole, dense.columns, map, out);
    if (whole != dense.columns) tiled_moments(block, {0, dense.rows, whole, dense.columns - whole}, map, out);
  }
}

void all_moments(const Block& block, ColumnMap map, ColumnMoments out) {
  const auto dense = [&](const auto* data) HWY_ATTR { dense_moments(block, data, map, out); };
  if (with_plain_data(block, dense)) return;
  tiled_moments(block, {0, row_count(block.x), 0, column_count(block.x)}, map, out);
}

}  // namespace
}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowmill::host {

HWY_EXPORT(all_moments);

void column_moments(const Block& block, ColumnMap map, ColumnMoments out) {
  const std::int64_t columns = column_count(block.x);
  std::fill_n(out.count, columns, 0);
  std::fill_n(out.missing, columns, 0);
  std::fill_n(out.sum, columns, 0.0);
  std::fill_n(out.second, columns, 0.0);
  std::fill_n(out.min, columns, std::numeric_limits<double>::infinity());
  std::fill_n(out.max, columns, -std::numeric_limits<double>::infinity());
  HWY_DYNAMIC_DISPATCH(all_moments)(block, map, out);
  for (std::int64_t j = 0; j < columns; ++j) {
    // zeros without a sign, so that the least of -0 and +0 does not depend on which comes first
    out.min[j] += 0.0;
    out.max[j] += 0.0;
  }
}

}  // namespace rowmill::host
#endif
