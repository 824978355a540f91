#pragma once
// A backend that does what the backend under it does, and misbehaves on purpose: slow copies, queues that fall behind
// one another at random, allocations that fail, events that never come. Its queues have native handles, as a vendor's.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "core/backend.hpp"
#include "core/error.hpp"

namespace rowmill::test {

/// What goes wrong. Numbers count from 1 over the backend's life; 0: never.
struct BackendFaults {
  std::chrono::microseconds copy_delay{0};   ///< every copy takes so much longer
  std::chrono::microseconds queue_delay{0};  ///< before each piece of work a queue dozes for up to so long, at random
  std::uint64_t seed = 1;                    ///< of the dozing
  std::int64_t greatest_allocation = 0;      ///< device memory of more bytes at once is refused; 0: none is
  std::int64_t stuck_event = 0;              ///< the n-th event is reached only when release_stuck() is called
};

/// Thread safe where the backend under it is. That must be one whose submit runs beside the caller.
class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> inner, const BackendFaults& faults)
      : inner_(std::move(inner)), faults_(faults), random_(faults.seed) {}
  ~FaultyBackend() override { release_stuck(); }

  void release_stuck() {
    const std::scoped_lock lock(gate_->mutex);
    gate_->open = true;
    gate_->changed.notify_all();
  }
  /// True once a queue waits in the event that never comes.
  bool is_stuck() const {
    const std::scoped_lock lock(gate_->mutex);
    return gate_->waiting;
  }
  std::int64_t refused() const { return refused_; }

  std::string name() const override { return inner_->name(); }
  bool unified() const override { return inner_->unified(); }
  Queue make_queue() override { return inner_->make_queue(); }

  void* allocate(std::size_t bytes, Queue queue) override {
    const auto asked = static_cast<std::int64_t>(bytes);
    if (faults_.greatest_allocation > 0 && asked > faults_.greatest_allocation) {
      ++refused_;
      throw Error(ExitCode::device, "out of device memory: " + std::to_string(asked) + " bytes asked for");
    }
    return inner_->allocate(bytes, queue);
  }
  void release(void* memory, std::size_t bytes, Queue queue) noexcept override {
    inner_->release(memory, bytes, queue);
  }
  void* allocate_staging(std::size_t bytes) override { return inner_->allocate_staging(bytes); }
  void release_staging(void* memory, std::size_t bytes) noexcept override { inner_->release_staging(memory, bytes); }

  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override {
    doze(queue);
    if (faults_.copy_delay.count() > 0) {
      inner_->submit(queue, [delay = faults_.copy_delay] { std::this_thread::sleep_for(delay); });
    }
    inner_->copy(to, from, bytes, queue);
  }
  void clear(void* to, std::size_t bytes, Queue queue) override {
    doze(queue);
    inner_->clear(to, bytes, queue);
  }
  void submit(Queue queue, std::function<void()> body) override {
    doze(queue);
    inner_->submit(queue, std::move(body));
  }

  Event record(Queue queue) override {
    if (++events_ == faults_.stuck_event) {
      inner_->submit(queue, [gate = gate_] { gate->wait(); });
    }
    return inner_->record(queue);
  }
  void wait(Queue queue, const Event& event) override { inner_->wait(queue, event); }
  void wait_host(const Event& event) override { inner_->wait_host(event); }
  bool reached(const Event& event) override { return inner_->reached(event); }
  std::chrono::steady_clock::duration longest_wait() const override { return inner_->longest_wait(); }

  MemoryUse device_memory() const override { return inner_->device_memory(); }
  MemoryUse staging_memory() const override { return inner_->staging_memory(); }

  /// Never null.
  void* native(Queue queue) override { return reinterpret_cast<void*>(static_cast<std::intptr_t>(queue.id) + 1); }
  static Queue queue_of(const void* native) { return {static_cast<int>(reinterpret_cast<std::intptr_t>(native) - 1)}; }

 private:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false, waiting = false;

    void wait() {
      std::unique_lock lock(mutex);
      waiting = true;
      changed.wait(lock, [this] { return open; });
    }
  };

  void doze(Queue queue) {
    if (faults_.queue_delay.count() == 0) return;
    std::chrono::microseconds time{0};
    {
      const std::scoped_lock lock(mutex_);
      time = std::chrono::microseconds(
          std::uniform_int_distribution<std::int64_t>(0, faults_.queue_delay.count())(random_));
    }
    inner_->submit(queue, [time] { std::this_thread::sleep_for(time); });
  }

  std::unique_ptr<Backend> inner_;
  const BackendFaults faults_;
  std::atomic<std::int64_t> events_{0}, refused_{0};
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::mutex mutex_;  ///< guards random_
  std::mt19937_64 random_;
};

}  // namespace rowmill::test
