#pragma once
// The memory of a pipeline's slots: taken once, given back once.
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"
#include "core/block.hpp"
#include "io/source.hpp"

namespace rowmill {

/// Where the rows of each source lie in a slot. x first, then y, then weights; 64-byte aligned.
struct SlotLayout {
  struct Part {
    Source* source = nullptr;  ///< null: there is none
    std::size_t offset = 0, bytes = 0;
  };
  std::array<Part, 3> parts;
  std::size_t bytes = 0;

  /// Room for any block of the grid. Asks the sources about every block: sparse rows differ in size.
  static SlotLayout of(const SourceSet& sources, const BlockGrid& grid);
};

/// One piece of staging memory and, where the backend keeps them apart, one of device memory, cut into slots. Where
/// there is no memory for all slots there are fewer, and one warning. The device memory is given back on `queue`.
class SlotArena {
 public:
  /// Throws what the backend throws if there is no memory for a single slot.
  SlotArena(Backend& backend, Queue queue, std::size_t slot_bytes, int slots);
  SlotArena(const SlotArena&) = delete;
  SlotArena& operator=(const SlotArena&) = delete;
  ~SlotArena();

  int slots() const { return slots_; }
  std::byte* staging(int slot) const { return staging_ + static_cast<std::size_t>(slot) * slot_bytes_; }
  std::byte* device(int slot) const { return device_ + static_cast<std::size_t>(slot) * slot_bytes_; }

 private:
  Backend& backend_;
  std::size_t slot_bytes_;
  int slots_;
  DeviceBuffer device_memory_;  ///< empty where staging is device memory
  std::byte* staging_ = nullptr;
  std::byte* device_ = nullptr;
  std::size_t staging_bytes_ = 0;
};

}  // namespace rowmill
