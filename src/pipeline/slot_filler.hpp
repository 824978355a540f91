#pragma once
// Reads a block into a slot and brings it to the device.
#include <cstdint>
#include <exception>
#include <span>

#include "core/backend.hpp"
#include "core/block.hpp"
#include "io/source.hpp"
#include "pipeline/slot_arena.hpp"

namespace rowmill {

/// What lies in a slot, and the events that say when it may be overwritten.
struct SlotContent {
  Block block;
  std::int64_t bytes = 0;    ///< of the block, as the sources count them
  std::exception_ptr error;  ///< of the read: then there is no block
  Event copied;              ///< staging may be overwritten (where it is not device memory)
  Event consumed;            ///< device memory may be overwritten
};

/// Thread safe, as long as no two threads use the same slot at once.
class SlotFiller {
 public:
  /// Takes the memory; see SlotArena.
  SlotFiller(const SourceSet& sources, const BlockGrid& grid, Backend& backend, int slots);

  int slots() const { return arena_.slots(); }

  /// Waits until the slot may be overwritten, reads the block and queues its copy. Errors are kept in `content`.
  void fill(int slot, SlotContent& content, std::int64_t block_id) noexcept;

  /// Work put on the queue from now on finds the block in device memory.
  void make_ready(const SlotContent& content, Queue consumer) { backend_.wait(consumer, content.copied); }

  /// Waits until nobody uses the slots any more. What failed on the consumers' queues stays there.
  void drain(std::span<const SlotContent* const> contents) noexcept;

 private:
  void read(int slot, SlotContent& content);
  void upload(int slot, SlotContent& content);

  const BlockGrid grid_;
  Backend& backend_;
  const SlotLayout layout_;
  const Queue copies_;
  SlotArena arena_;
};

}  // namespace rowmill
