#pragma once
// A device that stops working while its rank goes on beating: no call to it comes back, and none can be broken off.
#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.hpp"

namespace rowmill {

/// So many times --timeout may one wait for a device take: a block's work, which is seconds, and what is queued before.
constexpr int device_patience = 3;

/// Ends all ranks (Communicator::end_all) if the host has waited for longer. `device` as in "NVIDIA H200"; `timeout`
/// zero: never.
void check_patience(Communicator& ranks, const std::string& device, std::chrono::steady_clock::duration waited,
                    std::chrono::milliseconds timeout);

/// Waits for what is on the queue, calling `meanwhile` every now and then, which may throw. Rethrows what the work
/// threw.
void wait_for_queue(Communicator& ranks, Backend& backend, Queue queue, std::chrono::milliseconds timeout,
                    const std::function<void()>& meanwhile);

}  // namespace rowmill
