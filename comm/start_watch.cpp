#include "comm/start_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

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

StartWatch::StartWatch(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) thread_ = std::thread([this, timeout] { watch(timeout); });
}

StartWatch::~StartWatch() {
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StartWatch::watch(std::chrono::milliseconds timeout) {
  const int rank = rank_by_launcher();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, timeout + std::min(rank, 5) * kTurn, [this] { return started_; })) return;
  std::fprintf(stderr,
               "rowmill[%d]: error: not all ranks have started within %.1f s: one is stopped or its node cannot be "
               "reached; give a longer --timeout where starting takes longer\n",
               rank, std::chrono::duration<double>(timeout).count());
  // the main thread is inside MPI and will not come back: nothing can be unwound
  ::_exit(static_cast<int>(ExitCode::device));
}

}  // namespace rowmill
