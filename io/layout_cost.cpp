#include "io/layout_cost.hpp"

#include <algorithm>

#include "core/units.hpp"

namespace rowmill {

std::string band_cost(const SourceInfo& info) {
  constexpr std::int64_t kLowBytes = 16 << 20;
  const std::int64_t band_rows = std::min(info.storage_chunk_rows, info.rows);
  const std::int64_t band_bytes = band_rows * info.columns * static_cast<std::int64_t>(size_of(info.type));
  if (band_bytes <= kLowBytes) return {};
  return "a row lies in storage chunks of " + std::to_string(info.storage_chunk_rows) + " rows (" + info.storage +
         "): " + format_size(band_bytes) + " of rows are decoded before the first of them can be milled, and again " +
         "where --memory does not hold them; rechunked, they are read in order: " + rechunk_command(info);
}

std::string rechunk_command(const SourceInfo& info) {
  constexpr std::int64_t kGoodBytes = 1 << 20;
  const std::int64_t row_bytes =
      std::max<std::int64_t>(1, info.columns * static_cast<std::int64_t>(size_of(info.type)));
  std::string extents;
  for (std::size_t axis = 0; axis < info.shape.size(); ++axis) {
    const std::int64_t extent = static_cast<int>(axis) == info.row_axis
                                    ? std::clamp<std::int64_t>(kGoodBytes / row_bytes, 1, info.rows)
                                    : info.shape[axis];
    extents += (axis == 0 ? "" : "x") + std::to_string(extent);
  }
  return "h5repack -l " + info.dataset + ":CHUNK=" + extents + " " + info.path + " rechunked.h5";
}

}  // namespace rowmill
