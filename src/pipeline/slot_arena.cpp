#include "pipeline/slot_arena.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/error.hpp"

namespace rowmill {

namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Calls allocate(n) for n = slots, slots - 1, … until it does not throw; gives n.
template <typename Allocate>
int as_many_as_there_is_memory_for(int slots, Allocate allocate) {
  while (true) {
    try {
      allocate(slots);
      return slots;
    } catch (const Error&) {
      if (slots == 1) throw;
      --slots;
    }
  }
}

}  // namespace

SlotLayout SlotLayout::of(const SourceSet& sources, const BlockGrid& grid) {
  SlotLayout layout;
  layout.parts = {Part{sources.x}, Part{sources.y}, Part{sources.weights}};
  for (Part& part : layout.parts) {
    part.offset = layout.bytes;
    if (part.source == nullptr) continue;
    for (std::int64_t id = grid.first_id(); id < grid.end_id(); ++id) {
      part.bytes = std::max(part.bytes, aligned(part.source->bytes_for(grid.range(id))));
    }
    layout.bytes += part.bytes;
  }
  layout.bytes = std::max(layout.bytes, kAlignment);
  return layout;
}

SlotArena::SlotArena(Backend& backend, Queue queue, std::size_t slot_bytes, int slots)
    : backend_(backend), slot_bytes_(aligned(slot_bytes)), slots_(slots) {
  const auto bytes_of = [this](int n) { return static_cast<std::size_t>(n) * slot_bytes_; };
  if (!backend.unified()) {
    slots_ = as_many_as_there_is_memory_for(slots_,
                                            [&](int n) { device_memory_ = DeviceBuffer(backend, bytes_of(n), queue); });
  }
  slots_ = as_many_as_there_is_memory_for(slots_, [&](int n) {
    staging_ = static_cast<std::byte*>(backend.allocate_staging(bytes_of(n)));
    staging_bytes_ = bytes_of(n);
  });
  device_ = backend.unified() ? staging_ : device_memory_.data();
  if (slots_ < slots) {
    spdlog::warn("memory for {} of {} slots only: going on with these, reading ahead less", slots_, slots);
  }
}

SlotArena::~SlotArena() {
  backend_.release_staging(staging_, staging_bytes_);
}

}  // namespace rowmill
