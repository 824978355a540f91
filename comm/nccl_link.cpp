#include "comm/nccl_link.hpp"

#include <atomic>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>

#include "comm/backoff.hpp"

namespace rowmill {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Heartbeat kBeat{Heartbeat::Stage::combining, -1};

std::string in_seconds(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

NcclLink::NcclLink(Communicator& ranks, NcclCalls calls, NcclTimes times)
    : ranks_(ranks), calls_(std::move(calls)), times_(times), exceptions_(std::uncaught_exceptions()) {}

NcclLink::~NcclLink() {
  if (comm_ == nullptr) return;
  const bool failing = std::uncaught_exceptions() > exceptions_ || poll();
  try {
    failing ? abort("a failure elsewhere") : close();
  } catch (const std::exception& error) {
    // The sums are right and taken: what NCCL has against its end is nobody's business if the abort works.
    abort(error.what());
  }
}

/// In order: what was queued is done, and NCCL's threads end.
void NcclLink::close() {
  check(calls_.finalize(comm_), "ncclCommFinalize");
  wait(
      "ncclCommFinalize", [] { return true; }, times_.abort_grace);
  call_with_grace(calls_.destroy, "all sums were taken");
}

NcclCalls::Id NcclLink::make_id() {
  NcclCalls::Id id{};
  check(calls_.get_unique_id(&id), "ncclGetUniqueId");
  return id;
}

void NcclLink::connect(const NcclCalls::Id& id) {
  check(calls_.init_rank(&comm_, ranks_.size(), id, ranks_.rank()), "ncclCommInitRankConfig");
  wait("connecting the ranks by NCCL", [] { return true; });
}

void NcclLink::enqueue(const std::vector<Transfer>& transfers, void* stream) {
  check(calls_.group_start(), "ncclGroupStart");
  int worst = NcclCalls::success;
  for (const Transfer& one : transfers) {
    const int result = calls_.all_reduce(one.data, one.count, one.type, one.op, comm_, stream);
    if (result == NcclCalls::success || result == NcclCalls::in_progress) continue;
    worst = result;
    break;
  }
  const int ended = calls_.group_end();  // a group that was begun is ended in any case
  check(worst, "ncclAllReduce");
  check(ended, "ncclGroupEnd");
  // Only when this has become a success are the transfers on the stream, where an event can be put behind them.
  wait("queuing the sums on NCCL", [] { return true; });
}

void NcclLink::wait(const std::string& what, const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const Clock::time_point began = Clock::now();
  for (Backoff backoff;; backoff.pause()) {
    // In this order: a transfer that NCCL breaks off leaves the stream as one that has ended does.
    const bool is_done = done();
    int state = NcclCalls::success;
    check(calls_.get_async_error(comm_, &state), "ncclCommGetAsyncError");
    check(state, what);
    if (is_done && state == NcclCalls::success) return;
    if (ranks_.poll(kBeat).failed) throw PeerFailed();
    if (limit.count() != 0 && Clock::now() - began > limit) {
      throw Error(ExitCode::device, what + " did not end within " + in_seconds(limit) +
                                        ", though all ranks take part; look at the links between the GPUs and the "
                                        "nodes (NCCL_DEBUG=INFO), or use --comm mpi");
    }
  }
}

void NcclLink::abort(const std::string& cause) noexcept {
  if (comm_ != nullptr) call_with_grace(calls_.abort, cause);
}

/// On a thread of its own: NCCL may wait for what never comes, and cannot be interrupted.
void NcclLink::call_with_grace(const std::function<int(NcclCalls::Comm)>& call, const std::string& cause) {
  std::atomic<bool> returned = false;
  std::thread caller([&call, &returned, comm = std::exchange(comm_, nullptr)] {
    call(comm);
    returned = true;
  });
  const Clock::time_point began = Clock::now();
  for (Backoff backoff; !returned; backoff.pause()) {
    poll();
    if (Clock::now() - began < times_.abort_grace) continue;
    ranks_.end_all(cause + "; thereafter NCCL did not give up its communicator within " +
                   in_seconds(times_.abort_grace) + ", so all ranks end here");
  }
  caller.join();
}

/// Has another rank failed? Where nothing may be thrown.
bool NcclLink::poll() noexcept {
  try {
    return ranks_.poll(kBeat).failed;
  } catch (const std::exception&) {
    return true;
  }
}

void NcclLink::check(int result, const std::string& what) const {
  if (result == NcclCalls::success || result == NcclCalls::in_progress) return;
  throw Error(ExitCode::device, what + " failed: " + calls_.describe(result, comm_) +
                                    "; look at the GPUs and the links between them (NCCL_DEBUG=INFO), or use --comm "
                                    "mpi");
}

}  // namespace rowmill
