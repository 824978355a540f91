#pragma once
// A double of NCCL over MPI: its entry points with its manners. Calls only begin things; nothing moves but inside later
// calls; transfers wait in their queue for the other ranks and hold up what is behind them there, as a kernel of NCCL
// does; what is asked of a busy communicator is refused. And it misbehaves on purpose.
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/nccl_calls.hpp"
#include "tests/support/faulty_backend.hpp"

namespace rowmill::testing {

/// Of one rank. Operations count from 1 over the double's life; the first is the trial sum. 0: never.
struct NcclFaults {
  int version = 22809;
  int looks = 3;  ///< looks at the state for which begun things stay in progress
  int unique_id_result = 0, init_result = 0, group_end_result = 0;
  std::chrono::milliseconds init_delay{0};  ///< this rank joins the others so much later
  bool init_never = false;                  ///< this rank never joins
  bool init_error = false;                  ///< found out while connecting
  std::int64_t wrong_operation = 0;         ///< gives wrong numbers
  std::int64_t refused_operation = 0;       ///< all_reduce says no
  std::int64_t failing_operation = 0;       ///< breaks off with an asynchronous error
  std::int64_t endless_operation = 0;       ///< never begins here, so that it ends nowhere
  std::int64_t blocking_operation = 0;      ///< all_reduce does not return
  bool abort_hangs = false, finalize_hangs = false, destroy_hangs = false;
};

class NcclDouble {
 public:
  static constexpr int system_error = 2, invalid_usage = 5, remote_error = 6;

  /// Collective over `ranks`, which are those of MPI_COMM_WORLD. `backend` outlives it and runs its queues beside the
  /// caller.
  NcclDouble(Communicator& ranks, test::FaultyBackend& backend, const NcclFaults& faults);

  NcclCalls calls();

  std::int64_t groups() const { return groups_; }
  std::int64_t operations() const { return operations_; }
  std::int64_t connected() const { return connected_; }
  std::int64_t aborted() const { return aborted_; }
  std::int64_t destroyed() const { return destroyed_; }

 private:
  struct Operation;
  struct Comm;

  int init(NcclCalls::Comm* made, int ranks, const NcclCalls::Id& id, int rank);
  int all_reduce(void* data, std::size_t count, NcclCalls::Type type, NcclCalls::Op op, Comm& comm, void* stream);
  int end_group();
  int look(Comm& comm, int* state);
  void progress(Comm& comm);
  void move(Operation& operation, Comm& comm);
  void issue(Comm& comm);
  int finalize(Comm& comm);
  int destroy(Comm& comm);
  int abort(Comm& comm);

  test::FaultyBackend& backend_;
  const NcclFaults faults_;
  MPI_Comm world_ = MPI_COMM_NULL;
  int depth_ = 0;               // of groups
  int group_result_ = 0;        // the first error within the group
  Comm* group_comm_ = nullptr;  // that the group's operations are of
  std::int64_t groups_ = 0, operations_ = 0, connected_ = 0;
  std::atomic<std::int64_t> aborted_ = 0, destroyed_ = 0;
};

}  // namespace rowmill::testing
