#pragma once
// What is behind BlockPipeline. Include block_pipeline.hpp instead.
//
// Positions count the shard's blocks: 0, 1, …. `next_claim_` is the first that nobody reads or has read, `next_out_`
// the first that nobody has been given; positions between them lie in slots. A consumer either takes the block whose
// turn it is out of its slot (take), or takes its turn first and reads it (read_own), or, while the block whose turn it
// is is still being read by others, reads a later one into a slot (read_ahead_once), as reader threads do all the time.
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/backend.hpp"
#include "core/block.hpp"
#include "pipeline/block_pipeline.hpp"
#include "pipeline/prefetch_policy.hpp"
#include "pipeline/slot_filler.hpp"

namespace rowmill {

class BlockPipeline::Impl {
 public:
  Impl(SourceSet sources, const BlockGrid& grid, Shard shard, Backend& backend, PipelineOptions options);
  ~Impl();

  std::optional<Lease> next(Queue consumer);
  void stop_before(std::int64_t row);
  std::int64_t last_block() const;
  PipelineStats stats() const;

  const Block& block(int slot) const { return slots_[static_cast<std::size_t>(slot)].block; }
  void give_back(int slot, Queue consumer) noexcept;

 private:
  enum class SlotState : std::uint8_t { free, reading, ready, leased };

  struct Slot : SlotContent {
    SlotState state = SlotState::free;
    std::int64_t position = -1;
    int last_consumer = -1;  ///< queue: whose cache may still hold the slot
  };

  using Lock = std::unique_lock<std::mutex>;
  Slot& at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }
  int slot_of(std::int64_t position) const { return ring_[static_cast<std::size_t>(position % filler_->slots())]; }

  // With the lock held:
  bool turn_is_ready() const;
  bool may_claim() const { return next_claim_ < end_ && !free_.empty(); }
  bool reader_may_claim() const { return may_claim() && active_readers_ < policy_.readers_allowed(); }
  int claim(int consumer);
  void free_slot(int slot);
  void wake_consumers();
  void fail(std::int64_t position);
  std::optional<Lease> take(Lock& lock, Queue consumer);
  std::optional<Lease> read_own(Lock& lock, Queue consumer);
  std::optional<Lease> throw_error(Lock& lock, int slot);
  void read_ahead_once(Lock& lock);
  void wait_for_turn(Lock& lock);
  std::optional<Lease> lease(Lock& lock, int slot, Queue consumer);
  /// Unlocks while it reads.
  void read_into(Lock& lock, int slot);

  void start_readers(int readers);
  void reader_loop();

  const BlockGrid grid_;
  const Shard shard_;
  Backend& backend_;
  const bool consumers_read_;
  std::unique_ptr<SlotFiller> filler_;  ///< null if the shard is empty

  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable readers_wake_, consumers_wake_, settled_, idle_;
  std::vector<Slot> slots_;  ///< the content of a slot in state `reading` belong to the thread that reads
  std::vector<int> ring_;    ///< slot of position p at p mod slots
  std::vector<int> free_;    ///< in the order in which they became free
  std::int64_t next_claim_ = 0, next_out_ = 0, end_ = 0;
  std::int64_t failed_ = std::numeric_limits<std::int64_t>::max();  ///< first position that could not be read
  std::exception_ptr broken_;                                       ///< a lease could not be handed back
  int active_readers_ = 0, waiting_consumers_ = 0;
  int held_ = 0;  ///< slots that consumers read into or have leased
  PrefetchPolicy policy_;
  PipelineStats stats_;
  std::vector<std::thread> readers_;
};

struct Lease::State {
  State(BlockPipeline::Impl& from, int leased_slot, Queue consumer) : owner(from), slot(leased_slot), queue(consumer) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { owner.give_back(slot, queue); }

  BlockPipeline::Impl& owner;
  int slot;
  Queue queue;
};

}  // namespace rowmill
