#pragma once
// Blocks on their way from a source to the kernels: reader threads fill slots ahead of the consumers, within a fixed
// number of slots.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/backend.hpp"
#include "core/block.hpp"
#include "io/source.hpp"

namespace rowmill {

struct PipelineOptions {
  int slots = 4;        ///< staging buffers (and device buffers, where they are apart), at least 1
  int io_threads = 2;   ///< reader threads, at least 1
  /// Consumers that find nothing ready read a block themselves where a slot is free.
  bool consumers_read = true;
};

/// What the pipeline did, for logs and `--json`.
struct PipelineStats {
  std::int64_t blocks = 0, bytes = 0;
  double read_seconds = 0;  ///< summed over threads
  double wait_seconds = 0;  ///< consumers waiting for a block, summed over consumers
};

class BlockPipeline;

/// The right to use a slot's device buffer until it is handed back. ~Lease records "consumed" on the consumer's queue;
/// the slot's next use waits for that event.
class Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();
  const Block& block() const;

 private:
  friend class BlockPipeline;
  struct State;
  explicit Lease(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class BlockPipeline {
 public:
  /// Sources and backend must outlive the pipeline. Bytes of a slot: slot_bytes(). Reading begins at once.
  BlockPipeline(SourceSet sources, const BlockGrid& grid, Shard shard, Backend& backend, PipelineOptions options);
  BlockPipeline(const BlockPipeline&) = delete;
  BlockPipeline& operator=(const BlockPipeline&) = delete;
  ~BlockPipeline();  ///< stops reading, waits for readers and for the queues that still use slots

  /// The next block of the shard, given out in the shard's order; its data are ready for work put on `consumer`. Blocks
  /// while none is there. Empty when the shard is done or was stopped. Rethrows a reader's error when its block's turn
  /// comes (blocks before it are given out first). Thread safe.
  std::optional<Lease> next(Queue consumer);

  /// No block that begins at or after `row` is given out from now on. Smaller rows win; 0 stops at once. Wakes everyone.
  void stop_before(std::int64_t row);

  /// The block that was given out last; -1 if none.
  std::int64_t last_block() const;
  PipelineStats stats() const;

  /// Bytes of one slot for these sources.
  static std::size_t slot_bytes(const SourceSet& sources, const BlockGrid& grid);

 private:
  friend class Lease;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowmill
