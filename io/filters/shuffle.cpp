#include <cstring>

#include "io/filters/undo.hpp"
#include "io/filters/unshuffle.hpp"

namespace rowmill::filters {

/// What is no whole element stands behind the others as it is (H5Zshuffle.c).
std::size_t undo_shuffle(const FilterStep& step, Bytes from, Room to, FilterScratch&) {
  check_room(step, from.size(), to);
  const std::size_t width = step.values[0], count = from.size() / width;
  std::size_t done = 0;
  if (width > 1 && count > 1) {
    unshuffle(from.data(), count, width, to.data());
    done = count * width;
  }
  if (done < from.size()) std::memcpy(to.data() + done, from.data() + done, from.size() - done);
  return from.size();
}

}  // namespace rowmill::filters
