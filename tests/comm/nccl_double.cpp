#include "tests/comm/nccl_double.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace rowmill::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kPiece = std::size_t{1} << 20;

std::size_t width(NcclCalls::Type type) {
  if (type == NcclCalls::Type::int8) return 1;
  return type == NcclCalls::Type::int32 ? 4 : 8;
}

MPI_Datatype mpi_type(NcclCalls::Type type) {
  if (type == NcclCalls::Type::int8) return MPI_INT8_T;
  if (type == NcclCalls::Type::int32) return MPI_INT32_T;
  return type == NcclCalls::Type::int64 ? MPI_INT64_T : MPI_DOUBLE;
}

MPI_Op mpi_op(NcclCalls::Op op) {
  if (op == NcclCalls::Op::sum) return MPI_SUM;
  return op == NcclCalls::Op::max ? MPI_MAX : MPI_MIN;
}

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

}  // namespace

/// One transfer. The queue's thread brings the data and takes them away; the caller's moves them.
struct NcclDouble::Operation {
  std::int64_t number = 0;
  void* data = nullptr;
  std::size_t count = 0;
  NcclCalls::Type type = NcclCalls::Type::int8;
  NcclCalls::Op op = NcclCalls::Op::sum;
  Queue queue;

  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false, ended = false, broken_off = false;
  std::vector<std::byte> bytes;

  std::size_t moved = 0;  // elements
  MPI_Request request = MPI_REQUEST_NULL;

  void run() {
    std::unique_lock lock(mutex);
    bytes.resize(count * width(type));
    if (!bytes.empty()) std::memcpy(bytes.data(), data, bytes.size());
    ready = true;
    changed.wait(lock, [this] { return ended || broken_off; });
    if (ended && !bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  }
  bool is_ready() {
    const std::scoped_lock lock(mutex);
    return ready;
  }
  void set(bool& what) {
    const std::scoped_lock lock(mutex);
    what = true;
    changed.notify_all();
  }
};

struct NcclDouble::Comm {
  int ranks = 0;
  int state = NcclCalls::success;
  int looks = 0;
  bool connected = false, finalizing = false;
  Clock::time_point joins;
  MPI_Request joining = MPI_REQUEST_NULL;
  bool joined = false;
  std::int64_t keys[2] = {0, 0};
  std::vector<std::shared_ptr<Operation>> pending;  // begun, not yet on their queue
  std::deque<std::shared_ptr<Operation>> queued;
  std::mutex mutex;  // guards `all` against an abort on another thread
  std::vector<std::shared_ptr<Operation>> all;
};

NcclDouble::NcclDouble(Communicator& ranks, test::FaultyBackend& backend, const NcclFaults& faults)
    : backend_(backend), faults_(faults) {
  // Never freed: transfers may have been left on it.
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &world_, &request);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) ranks.poll({});
}

NcclCalls NcclDouble::calls() {
  const auto comm_of = [](NcclCalls::Comm comm) -> Comm& { return *static_cast<Comm*>(comm); };
  NcclCalls calls;
  calls.get_version = [this](int* version) {
    *version = faults_.version;
    return NcclCalls::success;
  };
  calls.get_unique_id = [this](NcclCalls::Id* id) {
    for (char& c : *id) c = static_cast<char>(std::random_device{}());
    return faults_.unique_id_result;
  };
  calls.init_rank = [this](NcclCalls::Comm* comm, int ranks, const NcclCalls::Id& id, int rank) {
    return init(comm, ranks, id, rank);
  };
  calls.get_async_error = [=, this](NcclCalls::Comm comm, int* state) { return look(comm_of(comm), state); };
  calls.group_start = [this] {
    ++depth_;
    return NcclCalls::success;
  };
  calls.group_end = [this] { return end_group(); };
  calls.all_reduce = [=, this](void* data, std::size_t count, NcclCalls::Type type, NcclCalls::Op op,
                               NcclCalls::Comm comm,
                               void* stream) { return all_reduce(data, count, type, op, comm_of(comm), stream); };
  calls.finalize = [=, this](NcclCalls::Comm comm) { return finalize(comm_of(comm)); };
  calls.destroy = [=, this](NcclCalls::Comm comm) { return destroy(comm_of(comm)); };
  calls.abort = [=, this](NcclCalls::Comm comm) { return abort(comm_of(comm)); };
  calls.describe = [](int result, NcclCalls::Comm) { return "result " + std::to_string(result); };
  return calls;
}

int NcclDouble::init(NcclCalls::Comm* made, int ranks, const NcclCalls::Id& id, int rank) {
  int mine = 0, all = 0;
  MPI_Comm_rank(world_, &mine);
  MPI_Comm_size(world_, &all);
  if (faults_.init_result != 0) return faults_.init_result;
  if (ranks != all || rank != mine) return invalid_usage;
  auto* const comm = new Comm;
  comm->ranks = ranks;
  comm->looks = faults_.looks;
  comm->joins = Clock::now() + faults_.init_delay;
  std::int64_t key = 1;
  for (const char c : id) key = (key * 31 + c) % 1000000007;
  comm->keys[0] = key;
  comm->keys[1] = -key;
  comm->state = NcclCalls::in_progress;
  *made = comm;
  return NcclCalls::in_progress;
}

int NcclDouble::all_reduce(void* data, std::size_t count, NcclCalls::Type type, NcclCalls::Op op, Comm& comm,
                           void* stream) {
  ++operations_;
  if (operations_ == faults_.blocking_operation) hang();
  int result = NcclCalls::success;
  if (operations_ == faults_.refused_operation) result = system_error;
  // the double has no need of operations outside of groups
  if (comm.state != NcclCalls::success || depth_ == 0 || stream == nullptr) result = invalid_usage;
  if (result != NcclCalls::success) {
    if (group_result_ == 0) group_result_ = result;
    return result;
  }
  auto operation = std::make_shared<Operation>();
  operation->number = operations_;
  operation->data = data;
  operation->count = count;
  operation->type = type;
  operation->op = op;
  operation->queue = test::FaultyBackend::queue_of(stream);
  comm.pending.push_back(operation);
  group_comm_ = &comm;
  return NcclCalls::success;
}

int NcclDouble::end_group() {
  if (depth_ == 0) return invalid_usage;
  if (--depth_ > 0) return NcclCalls::success;
  ++groups_;
  Comm* const comm = std::exchange(group_comm_, nullptr);
  int result = std::exchange(group_result_, 0);
  if (result == 0) result = faults_.group_end_result;
  if (comm == nullptr) return result;
  if (result != 0) {
    comm->pending.clear();
    return result;
  }
  comm->looks = faults_.looks;
  comm->state = NcclCalls::in_progress;
  return NcclCalls::in_progress;
}

/// Puts what was begun on its queue: only now would an event be behind it.
void NcclDouble::issue(Comm& comm) {
  for (const auto& operation : comm.pending) {
    backend_.submit(operation->queue, [operation] { operation->run(); });
    comm.queued.push_back(operation);
    const std::scoped_lock lock(comm.mutex);
    comm.all.push_back(operation);
  }
  comm.pending.clear();
}

int NcclDouble::look(Comm& comm, int* state) {
  progress(comm);
  *state = comm.state;
  return NcclCalls::success;
}

void NcclDouble::progress(Comm& comm) {
  if (comm.state != NcclCalls::success && comm.state != NcclCalls::in_progress) return;
  if (!comm.connected) {
    if (faults_.init_error) comm.state = remote_error;
    if (faults_.init_error || faults_.init_never || Clock::now() < comm.joins) return;
    if (!comm.joined) MPI_Iallreduce(MPI_IN_PLACE, comm.keys, 2, MPI_INT64_T, MPI_MAX, world_, &comm.joining);
    comm.joined = true;
    int come = 0;
    MPI_Test(&comm.joining, &come, MPI_STATUS_IGNORE);
    if (come == 0) return;
    comm.connected = true;
    ++connected_;
    if (comm.keys[0] != -comm.keys[1]) {
      comm.state = invalid_usage;
      return;
    }
  }
  if (comm.looks > 0) {
    --comm.looks;
    return;
  }
  if (comm.finalizing && faults_.finalize_hangs) return;
  comm.state = NcclCalls::success;
  issue(comm);
  if (!comm.queued.empty()) move(*comm.queued.front(), comm);
}

/// One transfer after another, as they stand in the queue.
void NcclDouble::move(Operation& operation, Comm& comm) {
  if (!operation.is_ready()) return;
  if (operation.number == faults_.failing_operation) {
    comm.state = remote_error;
    operation.set(operation.broken_off);
    return;
  }
  if (operation.number == faults_.endless_operation) return;
  if (operation.request == MPI_REQUEST_NULL && operation.moved < operation.count) {
    const std::size_t elements = std::min(kPiece, operation.count - operation.moved);
    MPI_Iallreduce(MPI_IN_PLACE, operation.bytes.data() + operation.moved * width(operation.type),
                   static_cast<int>(elements), mpi_type(operation.type), mpi_op(operation.op), world_,
                   &operation.request);
    operation.moved += elements;
  }
  int come = 0;
  MPI_Test(&operation.request, &come, MPI_STATUS_IGNORE);
  if (come == 0 || operation.moved < operation.count) return;
  if (operation.number == faults_.wrong_operation) operation.bytes[0] ^= std::byte{1};
  operation.set(operation.ended);
  comm.queued.pop_front();
}

int NcclDouble::finalize(Comm& comm) {
  if (comm.state != NcclCalls::success) return invalid_usage;
  comm.finalizing = true;
  comm.looks = faults_.looks;
  comm.state = NcclCalls::in_progress;
  return NcclCalls::in_progress;
}

int NcclDouble::destroy(Comm& comm) {
  if (faults_.destroy_hangs) hang();
  if (!comm.finalizing || comm.state != NcclCalls::success) return invalid_usage;
  ++destroyed_;
  delete &comm;
  return NcclCalls::success;
}

/// What MPI may still use of the communicator stays.
int NcclDouble::abort(Comm& comm) {
  static auto* const kept = new std::vector<Comm*>;  // itself never destroyed: leak checkers look at the very end
  kept->push_back(&comm);
  if (faults_.abort_hangs) hang();
  const std::scoped_lock lock(comm.mutex);
  for (const auto& operation : comm.all) operation->set(operation->broken_off);
  ++aborted_;
  return NcclCalls::success;
}

}  // namespace rowmill::testing
