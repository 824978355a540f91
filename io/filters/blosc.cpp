#include <blosc.h>

#include "io/filters/undo.hpp"

namespace rowmill::filters {

/// A Blosc frame says itself how it was made. The library's call that keeps its memory from frame to frame takes a lock
/// of the whole process, so the other is used, which allocates.
std::size_t undo_blosc(const FilterStep& step, Bytes from, Room to, FilterScratch&) {
  if (from.size() < BLOSC_MIN_HEADER_LENGTH) fail(step, "is shorter than its head: it is truncated");
  std::size_t bytes = 0, stored = 0, block = 0;
  blosc_cbuffer_sizes(from.data(), &bytes, &stored, &block);
  if (stored > from.size()) fail(step, "is truncated");
  if (blosc_cbuffer_validate(from.data(), stored, &bytes) != 0) fail(step, "is damaged");
  check_room(step, bytes, to);
  const int written = blosc_decompress_ctx(from.data(), to.data(), bytes, 1);
  if (written < 0 || static_cast<std::size_t>(written) != bytes) {
    const char* codec = blosc_cbuffer_complib(from.data());
    fail(step,
         std::string("is damaged, or the library lacks its codec (") + (codec == nullptr ? "unknown" : codec) + ")");
  }
  return bytes;
}

}  // namespace rowmill::filters
