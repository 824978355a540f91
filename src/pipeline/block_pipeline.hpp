#pragma once
// Blocks on their way from a source to the kernels: reader threads fill slots ahead of the consumers, within a fixed
// number of slots.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/backend.hpp"
#include "core/block.hpp"
#include "io/source.hpp"

namespace rowmill {

struct PipelineOptions {
  int slots = 4;       ///< staging buffers (and device buffers, where they are apart), at least 1
  int io_threads = 2;  ///< reader threads, at least 1
  /// Consumers that find nothing ready read a block themselves where a slot is free. Where staging is device memory,
  /// readers then run ahead only if reads sleep or processors are left over.
  bool consumers_read = true;
  int cores = 0;  ///< processors for readers and consumers of this pipeline; 0: all that the process may use
};

/// What the pipeline did, for logs and `--json`.
struct PipelineStats {
  std::int64_t blocks = 0, bytes = 0;
  double read_seconds = 0;  ///< summed over threads
  double wait_seconds = 0;  ///< consumers waiting for a block, summed over consumers
};

class BlockPipeline;

/// The right to use a slot's device buffer until it is handed back. ~Lease records "consumed" on the consumer's queue;
/// the slot's next use waits for that event. A thread that holds as many leases as there are slots and asks for another
/// waits for ever.
class Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();
  const Block& block() const;

 private:
  friend class BlockPipeline;
  struct State;
  explicit Lease(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

class BlockPipeline {
 public:
  /// Sources (of the same number of rows: check_aligned) and backend must outlive the pipeline. The shard's ids may
  /// come in any order; std::invalid_argument if one is not of the grid. Memory for the slots, slot_bytes() each, is
  /// taken here: if there is not enough for all, fewer slots and a warning; if not for one, what the backend throws.
  /// Reading begins at once.
  BlockPipeline(SourceSet sources, const BlockGrid& grid, Shard shard, Backend& backend, PipelineOptions options);
  BlockPipeline(const BlockPipeline&) = delete;
  BlockPipeline& operator=(const BlockPipeline&) = delete;
  /// Stops reading, waits for reads that have begun and for the queues that still use slots. Leases must have been
  /// handed back, or be in the hands of other threads, which are waited for; calls of next() must have returned. What
  /// failed on the consumers' queues is not thrown: ask them by wait_host.
  ~BlockPipeline();

  /// The next block of the shard, given out in the shard's order; its data are ready for work put on `consumer`. Waits
  /// while none is there. Empty when the shard is done or was stopped.
  ///
  /// A block is given out when its turn is taken, though its consumer may have to read it first: so the blocks that
  /// have been given out are the first ones of the shard, without a gap, at any time.
  ///
  /// An error of a read is thrown when its block's turn comes, after all blocks before it, once, and only the first in
  /// the shard's order; everybody else gets nothing from then on. So does what failed on a queue that used the slot.
  /// Thread safe.
  std::optional<Lease> next(Queue consumer);

  /// No block that begins at or after `row` is given out from now on, nor any block behind such a one in the shard's
  /// order. Smaller rows win; 0 stops at once. Wakes everyone.
  void stop_before(std::int64_t row);

  /// The last block in the shard's order that was given out; -1 if none.
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
