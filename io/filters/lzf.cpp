#include <lzf.h>

#include <cerrno>
#include <climits>

#include "io/filters/undo.hpp"

namespace rowmill::filters {

std::size_t undo_lzf(const FilterStep& step, Bytes from, Room to, FilterScratch&) {
  if (from.size() > UINT_MAX || to.size() > UINT_MAX) fail(step, "is longer than 4 GiB");
  if (from.empty()) fail(step, "is empty");
  errno = 0;
  const unsigned written =
      lzf_decompress(from.data(), static_cast<unsigned>(from.size()), to.data(), static_cast<unsigned>(to.size()));
  if (written == 0 && errno == E2BIG) {
    fail(step, "holds more than the " + std::to_string(to.size()) + " bytes that there is room for: it is damaged");
  }
  if (written == 0) fail(step, "is damaged or truncated");
  return written;
}

}  // namespace rowmill::filters
