#include <atomic>
#include <cstring>

#include "core/backend.hpp"
#include "core/error.hpp"
#include "core/pool.hpp"

namespace rowmill {

namespace {

/// Work runs in the calling thread at once, so every event is reached when it is made: events are empty.
class HostBackend final : public Backend {
 public:
  std::string name() const override { return "host"; }
  bool unified() const override { return true; }
  Queue make_queue() override { return {queues_.fetch_add(1, std::memory_order_relaxed)}; }

  void* allocate(std::size_t bytes, Queue) override {
    try {
      return device_.allocate(bytes);
    } catch (const Error& error) {
      throw Error(ExitCode::device, error.what());
    }
  }
  void release(void* memory, std::size_t bytes, Queue) noexcept override { device_.release(memory, bytes); }
  void* allocate_staging(std::size_t bytes) override { return staging_.allocate(bytes); }
  void release_staging(void* memory, std::size_t bytes) noexcept override { staging_.release(memory, bytes); }

  void copy(void* to, const void* from, std::size_t bytes, Queue) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void clear(void* to, std::size_t bytes, Queue) override {
    if (bytes > 0) std::memset(to, 0, bytes);
  }
  void submit(Queue, std::function<void()> body) override { body(); }

  Event record(Queue) override { return {}; }
  void wait(Queue, const Event&) override {}
  void wait_host(const Event&) override {}
  bool reached(const Event&) override { return true; }

  void trim() noexcept override {
    device_.trim();
    staging_.trim();
  }

  MemoryUse device_memory() const override { return device_.use(); }
  MemoryUse staging_memory() const override { return staging_.use(); }

 private:
  std::atomic<int> queues_{0};
  MemoryPool device_, staging_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() {
  return std::make_unique<HostBackend>();
}

}  // namespace rowmill
