#pragma once
// The host backend with queues that really run beside the caller, and the faults that tests ask of it.
//
// Failures travel as on a device: work behind a failure on its queue is skipped, and a queue that waits for an event
// behind a failure fails with it, until wait_host has thrown the failure on that queue.
#include <cstdint>
#include <memory>

#include "core/backend.hpp"

namespace rowmill {

struct AsyncHostOptions {
  std::int64_t failing_allocation = 0;  ///< the n-th device allocation (from 1) throws Error(device); 0: none does
  std::int64_t device_bytes = 0;        ///< device memory there is, in bytes as asked for; 0: no limit
  int max_copy_delay_us = 0;            ///< copies take up to so many microseconds more, at random
  std::uint64_t seed = 1;               ///< of the delays
};

std::unique_ptr<Backend> make_async_host_backend(const AsyncHostOptions& options);

}  // namespace rowmill
