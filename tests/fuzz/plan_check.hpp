#pragma once
// What the program relies on once a plan has been checked, said a second time in other words.
#include <cstdlib>

#include "io/input_plan.hpp"

namespace rowmill::test {

__extension__ using Wide = __int128;

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Bytes of all its elements; wide enough for whatever fits in int64.
inline Wide bytes_of(const InputPlan& plan) {
  Wide bytes = static_cast<Wide>(size_of(plan.type));
  for (const std::int64_t extent : plan.shape) {
    require(extent >= 0);
    bytes *= extent;
    require(bytes <= INT64_MAX);
  }
  return bytes;
}

inline void require_whole_chunks(const InputPlan& plan) {
  require(plan.chunk.size() == plan.shape.size());
  std::int64_t before = -1;
  for (const h5::ChunkEntry& entry : plan.chunk_table) {
    require(entry.grid_index > before);
    before = entry.grid_index;
    require(entry.bytes > 0 && entry.address >= 0);
    require(static_cast<Wide>(entry.address) + entry.bytes <= plan.file_bytes);
  }
  for (const std::int64_t extent : plan.chunk) require(extent > 0);
  for (const FilterStep& step : plan.filters) require(why_not_decoded(step).empty());
}

/// Aborts where a plan that check_plan() let through (as its parts) would lead astray.
inline void require_sound(const InputPlan& plan) {
  require(!plan.shape.empty() && plan.shape.size() <= kMaxAxes);
  require(plan.row_axis >= 0 && static_cast<std::size_t>(plan.row_axis) < plan.shape.size());
  const Wide bytes = bytes_of(plan);
  require(plan.rows() == 0 || plan.columns() > 0);
  if (plan.way == Way::contiguous && bytes > 0) require(plan.offset >= 0 && plan.offset + bytes <= plan.file_bytes);
  if (plan.way == Way::chunks || plan.way == Way::fetched) require_whole_chunks(plan);
  const SourceInfo info = info_of(plan);
  require(info.rows == plan.rows() && info.columns == plan.columns());
  const std::vector<std::byte> sent = serialise(plan);
  require(serialise(deserialise_plan(sent)) == sent);
}

}  // namespace rowmill::test
