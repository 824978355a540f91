#include "io/filters/undo.hpp"

namespace rowmill::filters {

void fail(const FilterStep& step, const std::string& what) {
  throw FilterError("filter " + std::to_string(step.id) + " (" + name_of_filter(step.id) + "): " + what);
}

void check_room(const FilterStep& step, std::uint64_t bytes, Room to) {
  if (bytes > to.size()) {
    fail(step, "holds " + std::to_string(bytes) + " bytes where there is room for " + std::to_string(to.size()) +
                   ": it is damaged");
  }
}

std::uint32_t little_u32(Bytes from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(from[at + i]);
  return value;
}

std::uint32_t big_u32(Bytes from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(from[at + i]);
  return value;
}

std::uint64_t big_u64(Bytes from, std::size_t at) {
  return std::uint64_t{big_u32(from, at)} << 32 | big_u32(from, at + 4);
}

}  // namespace rowmill::filters
