#pragma once
// What the tests of communicators share: a World a test, a backend, fresh random data known to all ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "comm/world.hpp"
#include "tests/comm/deferring_backend.hpp"

namespace rowmill::testing {

class CommTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world.emplace(argc, argv, std::chrono::seconds(20));
    std::vector<std::byte> bytes(sizeof seed);
    if (rank() == 0) {
      const std::uint64_t fresh = std::random_device{}();
      std::memcpy(bytes.data(), &fresh, sizeof fresh);
    }
    comm().broadcast(bytes, 0);
    std::memcpy(&seed, bytes.data(), sizeof seed);
    queue = backend.make_queue();
    // A failure that a test begins with must not meet ranks that are still in the broadcast.
    ASSERT_TRUE(comm().agree(std::nullopt, beat).ok);
  }

  Communicator& comm() { return world->communicator(); }
  int rank() const { return world->rank(); }
  int size() const { return world->size(); }

  /// Polls until `done`; false if that takes longer than anything here may.
  template <typename Done>
  bool poll_until(const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      if (done(comm().poll(beat))) return true;
    }
    return false;
  }

  /// Rank `late` arrives here after the others have begun to wait for it.
  void be_late(int late) {
    if (rank() != late) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
    while (std::chrono::steady_clock::now() < until) comm().poll(beat);
  }

  int argc = 0;
  char** argv = nullptr;
  Heartbeat beat{Heartbeat::Stage::milling, 3};
  std::optional<World> world;
  std::uint64_t seed = 0;
  DeferringBackend backend{true};
  Queue queue;
};

}  // namespace rowmill::testing
