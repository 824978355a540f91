#include "comm/device_patience.hpp"

#include <cstdio>

#include "comm/backoff.hpp"

namespace rowmill {

void check_patience(Communicator& ranks, const std::string& device, std::chrono::steady_clock::duration waited,
                    std::chrono::milliseconds timeout) {
  if (timeout.count() == 0 || waited <= device_patience * timeout) return;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", std::chrono::duration<double>(waited).count());
  ranks.end_all(device + " of rank " + std::to_string(ranks.rank()) + " has not ended its work for " + seconds +
                " s: it has stopped, or its work needs a longer --timeout");
}

void wait_for_queue(Communicator& ranks, Backend& backend, Queue queue, std::chrono::milliseconds timeout,
                    const std::function<void()>& meanwhile) {
  const auto began = std::chrono::steady_clock::now();
  const Event reached = backend.record(queue);
  for (Backoff backoff; !backend.reached(reached); backoff.pause()) {
    meanwhile();
    check_patience(ranks, "the device", std::chrono::steady_clock::now() - began, timeout);
  }
  backend.wait_host(reached);
}

}  // namespace rowmill
