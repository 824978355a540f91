#pragma once
// A backend for tests of the ranks: device memory that the host must not touch by itself, and queues that do nothing
// until they are waited for.
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend.hpp"

namespace rowmill::testing {

class DeferringBackend final : public Backend {
 public:
  explicit DeferringBackend(bool unified_memory) : unified_(unified_memory) {}

  std::string name() const override { return "deferring"; }
  bool unified() const override { return unified_; }
  Queue make_queue() override {
    queues_.emplace_back();
    return {static_cast<int>(queues_.size()) - 1};
  }

  void* allocate(std::size_t bytes, Queue) override { return take(bytes, device_); }
  void release(void* memory, std::size_t, Queue) noexcept override { give(memory, device_); }
  void* allocate_staging(std::size_t bytes) override { return take(bytes, staging_); }
  void release_staging(void* memory, std::size_t) noexcept override { give(memory, staging_); }

  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override {
    submit(queue, [=] { std::memcpy(to, from, bytes); });
  }
  void clear(void* to, std::size_t bytes, Queue queue) override {
    submit(queue, [=] { std::memset(to, 0, bytes); });
  }
  void submit(Queue queue, std::function<void()> body) override { queued(queue.id).push_back(std::move(body)); }

  Event record(Queue queue) override { return {std::make_shared<int>(queue.id)}; }
  void wait(Queue, const Event& event) override { wait_host(event); }
  void wait_host(const Event& event) override {
    if (!event.state) return;
    auto& work = queued(*static_cast<const int*>(event.state.get()));
    for (; !work.empty(); work.pop_front()) work.front()();
  }
  /// One piece of work a look.
  bool reached(const Event& event) override {
    if (!event.state) return true;
    auto& work = queued(*static_cast<const int*>(event.state.get()));
    if (work.empty()) return true;
    work.front()();
    work.pop_front();
    return false;
  }

  MemoryUse device_memory() const override { return {static_cast<std::int64_t>(device_.size()), 0}; }
  MemoryUse staging_memory() const override { return {static_cast<std::int64_t>(staging_.size()), staging_taken_}; }

 private:
  using Buffers = std::map<void*, std::unique_ptr<std::byte[]>>;

  std::deque<std::function<void()>>& queued(int id) { return queues_.at(static_cast<std::size_t>(id)); }

  void* take(std::size_t bytes, Buffers& buffers) {
    auto memory = std::make_unique<std::byte[]>(bytes + 1);
    std::memset(memory.get(), 0xa5, bytes);
    void* const address = memory.get();
    buffers.emplace(address, std::move(memory));
    if (&buffers == &staging_) ++staging_taken_;
    return address;
  }
  static void give(void* memory, Buffers& buffers) noexcept { buffers.erase(memory); }

  bool unified_;
  std::deque<std::deque<std::function<void()>>> queues_;
  Buffers device_, staging_;
  std::int64_t staging_taken_ = 0;
};

}  // namespace rowmill::testing
