#pragma once
// Work that takes long on the thread that does all MPI: done on another thread while this one keeps the ranks in touch.
#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include "comm/communicator.hpp"

namespace rowmill {

/// `look`, if set, is called every few milliseconds meanwhile.
template <typename Work>
auto with_heartbeats(Communicator& communicator, const Heartbeat& heartbeat, Work work,
                     const std::function<void()>& look = {}) {
  if (communicator.size() == 1 && !look) return work();
  auto done = std::async(std::launch::async, std::move(work));
  while (done.wait_for(std::chrono::milliseconds(2)) != std::future_status::ready) {
    communicator.poll(heartbeat);
    if (look) look();
  }
  return done.get();
}

}  // namespace rowmill
