#include "core/memory_budget.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rowmill {

void MemoryBudget::take(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const std::int64_t limit = use_.limit > 0 ? use_.limit : std::numeric_limits<std::int64_t>::max();
  if (bytes > static_cast<std::uint64_t>(std::max<std::int64_t>(0, limit - use_.current))) {
    throw_out_of_device_memory(bytes, use_);
  }
  use_.current += static_cast<std::int64_t>(bytes);
  use_.high_water = std::max(use_.high_water, use_.current);
}

void MemoryBudget::give_back(std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  use_.current -= static_cast<std::int64_t>(bytes);
}

MemoryUse MemoryBudget::use() const {
  const std::scoped_lock lock(mutex_);
  return use_;
}

void throw_out_of_device_memory(std::size_t bytes, const MemoryUse& use) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  std::string text =
      "out of device memory: " + format_size(static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, most))) +
      " asked for, " + format_size(use.current) + " in use";
  if (use.limit > 0) text += " of " + format_size(use.limit);
  throw Error(ExitCode::device, text + ": choose smaller --block-rows");
}

}  // namespace rowmill
