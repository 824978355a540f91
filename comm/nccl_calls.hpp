#pragma once
// The entry points of NCCL that we use, as a table: the real ones in the CUDA module, a double in tests. No header of
// NCCL or CUDA here; the numbers are NCCL's own, and nccl_communicator.cpp checks them against nccl.h.
//
// What they promise is in NCCL's guide ("Creating a Communicator", "Fault Tolerance", "Group Calls",
// docs.nvidia.com/deeplearning/nccl/user-guide): a communicator that does not block answers in_progress where it has
// only begun, get_async_error says how that went, and nothing else may be asked of it before. Operations are on their
// stream once the group's end has become a success.
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace rowmill {

struct NcclCalls {
  using Comm = void*;                ///< ncclComm_t
  using Id = std::array<char, 128>;  ///< ncclUniqueId
  static constexpr int success = 0, in_progress = 7;
  enum class Type : int { int8 = 0, int32 = 2, int64 = 4, float64 = 8 };
  enum class Op : int { sum = 0, max = 2, min = 3 };

  std::function<int(int* version)> get_version;  ///< 22809 for 2.28.9
  std::function<int(Id* id)> get_unique_id;
  /// ncclCommInitRankConfig with blocking = 0.
  std::function<int(Comm* comm, int ranks, const Id& id, int rank)> init_rank;
  std::function<int(Comm comm, int* state)> get_async_error;
  std::function<int()> group_start, group_end;
  /// In place. `stream`: the native handle of a queue.
  std::function<int(void* data, std::size_t count, Type type, Op op, Comm comm, void* stream)> all_reduce;
  std::function<int(Comm comm)> finalize, destroy;
  std::function<int(Comm comm)> abort;  ///< from any thread; may block
  /// What a result means, and NCCL's last word on this communicator (null: none yet).
  std::function<std::string(int result, Comm comm)> describe;
};

/// NCCL's library, or why it cannot be used here.
struct NcclLibrary {
  std::optional<NcclCalls> calls;
  std::string why_not;  ///< one clause
};

}  // namespace rowmill
