#include "comm/call_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "comm/control_plane.hpp"
#include "core/error.hpp"

namespace rowmill {
namespace {

constexpr std::chrono::seconds kTurn{2};  // enough for a launcher to end the ranks after the one that speaks

int rank_by_launcher() {
  constexpr std::array names{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (const char* name : names) {
    if (const char* rank = std::getenv(name)) return std::max(0, std::atoi(rank));
  }
  return 0;
}

}  // namespace

CallWatch::CallWatch(std::chrono::milliseconds timeout, std::string not_ended, std::string advice)
    : not_ended_(std::move(not_ended)), advice_(std::move(advice)) {
  if (timeout.count() > 0) thread_ = std::thread([this, timeout] { watch(timeout); });
}

CallWatch::~CallWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CallWatch::watch(std::chrono::milliseconds timeout) {
  const int rank = rank_by_launcher();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, timeout + std::min(rank, 5) * kTurn, [this] { return ended_; })) return;
  if (!ControlPlane::termination_asked()) {
    std::fprintf(stderr, "rowmill[%d]: error: %s within %.1f s: %s\n", rank, not_ended_.c_str(),
                 std::chrono::duration<double>(timeout).count(), advice_.c_str());
  }
  // the main thread is inside MPI and will not come back: nothing can be unwound
  ::_exit(static_cast<int>(ExitCode::device));
}

}  // namespace rowmill
