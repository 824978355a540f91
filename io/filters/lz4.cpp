#include <lz4.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "io/filters/undo.hpp"

namespace rowmill::filters {

void decompress_lz4_block(const FilterStep& step, Bytes from, Room to) {
  if (from.size() > INT_MAX || to.size() > INT_MAX) fail(step, "has a block of more than 2 GiB: it is damaged");
  const int written =
      LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(to.data()),
                          static_cast<int>(from.size()), static_cast<int>(to.size()));
  if (written < 0 || static_cast<std::size_t>(written) != to.size()) fail(step, "is damaged");
}

/// The format of the registered plugin (HDF5_LZ4.pdf of the HDF Group; all numbers big-endian): bytes of the data (8),
/// bytes of a block (4), then for each block its stored bytes (4) and the block. A block that did not shrink is stored
/// as it is.
std::size_t undo_lz4(const FilterStep& step, Bytes from, Room to, FilterScratch&) {
  if (from.size() < 12) fail(step, "is shorter than its head: it is truncated");
  const std::uint64_t bytes = big_u64(from, 0);
  const std::size_t whole_block = big_u32(from, 8);
  check_room(step, bytes, to);
  if (whole_block == 0 && bytes > 0) fail(step, "has blocks of no bytes: it is damaged");
  std::size_t at = 12;
  for (std::size_t done = 0; done < bytes;) {
    if (from.size() - at < 4) fail(step, "is truncated");
    const std::size_t stored = big_u32(from, at), block = std::min<std::size_t>(whole_block, bytes - done);
    at += 4;
    if (stored > from.size() - at) fail(step, "is truncated");
    const Room place = to.subspan(done, block);
    if (stored == block) {
      std::memcpy(place.data(), from.data() + at, block);
    } else {
      decompress_lz4_block(step, from.subspan(at, stored), place);
    }
    at += stored;
    done += block;
  }
  return bytes;
}

}  // namespace rowmill::filters
