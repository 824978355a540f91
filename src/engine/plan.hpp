#pragma once
// The memory and block plan of a run. What decides bits (block rows, precision) depends on source, job and options
// alone; what does not (lanes, slots) fits them into this rank's memory.
#include <cstdint>
#include <string>

#include "core/block.hpp"
#include "core/dtype.hpp"
#include "core/partial.hpp"
#include "io/source.hpp"
#include "jobs/job.hpp"

namespace rowmill {

/// Rows of a block: the wish (--block-rows) if it is set, else the job's preference, rounded up to whole storage chunks
/// where those are not much larger.
std::int64_t choose_block_rows(const BlockPreference& preference, const SourceInfo& source, std::int64_t wish);

/// What a job prefers on a backend (Backend::name): a GPU likes blocks that keep it busy and the bus streaming.
BlockPreference preference_on(const std::string& backend, BlockPreference preference);

/// What a job prefers where products are made entry by entry: a second-level cache should hold most of a block.
BlockPreference preference_by_entries(BlockPreference preference);

/// "auto" or the name of a precision to the precision of products and its chains. auto on hosts: fp32 for stored types
/// of at most 32 bits, where its bound meets rtol; else fp64. auto on devices: cheapest_product. A pure function of the
/// device's name and kind, the type, columns and rtol. Throws Error(usage) for a precision that the device does not
/// offer or that cannot meet rtol, and for other words.
ProductChoice choose_precision(const std::string& wish, const ProductModel& model, std::int64_t columns, double rtol,
                               const Ops& ops);

/// Are the products of a source made entry by entry, in fp64? Where it is sparse, the device can, the wish is auto or
/// fp64, and that is less work than by dense tiles. A pure function of the source's pointers.
bool multiplies_by_entries(const std::string& precision, const SourceInfo& source, const Ops& ops);

struct MemoryPlan {
  int lanes = 1;  ///< blocks computed at once, each with its own partial
  int slots = 2;  ///< blocks read ahead or in hand
  int io_threads = 1;
  std::int64_t slot_bytes = 0;
  std::int64_t reader_bytes = 0;  ///< of one reading thread, besides slots
  bool lanes_read = true;         ///< what computes reads too, and then takes a reading thread's memory
  std::int64_t shared_bytes = 0;  ///< that the source takes once
  std::int64_t lane_bytes = 0;    ///< a lane's partial and scratch
  std::int64_t fixed_bytes = 0;   ///< the program itself, and end_bytes
  std::int64_t end_bytes = 0;     ///< the combined partial and the result
  std::int64_t node_bytes = 0;    ///< what all ranks of the node may use: --memory, or what was chosen for it
  int ranks_on_node = 1;
  std::int64_t budget = 0;                          ///< of this rank
  bool apart = false;                               ///< partials, and a copy of each slot, lie in device memory
  std::int64_t queue_bytes = 0;                     ///< of device memory that a lane's operations take besides
  std::int64_t device_fixed = 0;                    ///< device memory while ranks combine
  std::int64_t device_budget = 0;                   ///< 0: not known, or not apart
  int read_ahead() const { return slots - lanes; }  ///< blocks
  std::int64_t expected() const {
    return fixed_bytes + shared_bytes + (apart ? 0 : lanes * lane_bytes) + slots * slot_bytes +
           (io_threads + (lanes_read ? lanes : 0)) * reader_bytes;
  }
  std::int64_t expected_on_device() const {
    return apart ? device_fixed + lanes * (lane_bytes + queue_bytes) + slots * slot_bytes : 0;
  }
};

struct MemoryWish {
  std::int64_t node_bytes = 0;  ///< --memory; 0: a quarter of what is free
  int ranks_on_node = 1;
  int threads = 0;                 ///< --threads; 0: the processors of the node, dealt among its ranks
  int prefetch = 4;                ///< blocks read ahead
  int io_threads = 0;              ///< 0: as many as lanes
  std::int64_t reader_bytes = 0;   ///< SourceInfo::reader_bytes
  std::int64_t shared_bytes = 0;   ///< SourceInfo::shared_bytes
  bool read_elsewhere = false;     ///< SourceInfo::read_elsewhere
  std::int64_t program_bytes = 0;  ///< the program itself; 0: what is resident now
  std::int64_t dense_bytes = 0;    ///< of sparse rows: what they would take dense; else 0
};

/// What the rows of a sparse source would take dense, at most 2^62; 0 for dense sources.
std::int64_t dense_bytes_of(const SourceInfo& source);

/// Processors of the node for each of its ranks.
int processors_of_rank(int ranks_on_node);

/// What one rank may use of the node's memory: --memory, or a quarter of what is free if that is 0.
std::int64_t memory_of_rank(std::int64_t node_bytes, int ranks_on_node);

/// Throws Error(usage) naming the need if two slots and one lane do not fit. Of sparse rows, where --memory does not
/// say, it keeps within a tenth of what they would take dense, if two slots and one lane fit in that.
MemoryPlan plan_memory(const MemoryWish& wish, const PartialLayout& layout, std::int64_t slot_bytes,
                       std::int64_t blocks_of_rank);

/// Where device memory is apart: it holds partials and slots, and staging for the slots counts as memory of the node.
/// Two lanes (one computes while the other's next block is on its way), or one where memory is short.
struct DeviceRoom {
  std::int64_t bytes = 0;        ///< that this rank may use; 0: not known
  std::int64_t queue_bytes = 0;  ///< what operations take for each queue besides their arguments
};

/// Throws Error(usage) naming the need if two slots and one lane do not fit, on the node or on the device.
MemoryPlan plan_device_memory(const MemoryWish& wish, const DeviceRoom& device, const PartialLayout& layout,
                              std::int64_t slot_bytes, std::int64_t blocks_of_rank);

}  // namespace rowmill
