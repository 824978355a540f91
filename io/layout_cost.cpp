#include "io/layout_cost.hpp"

#include <algorithm>

namespace rowmill {

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
