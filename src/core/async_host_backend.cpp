#include "core/async_host_backend.hpp"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/pool.hpp"
#include "core/units.hpp"
#include "core/wait_list.hpp"

namespace rowmill {

namespace {

class Worker;

/// A point in a worker's queue. `failure` is what had failed on the queue when the point was reached.
class Point {
 public:
  explicit Point(std::shared_ptr<Worker> owner) : owner_(std::move(owner)) {}

  void reach(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    reached_ = true;
    failure_ = std::move(failure);
    changed_.notify_all();
  }
  std::exception_ptr wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
    return failure_;
  }
  bool reached() {
    const std::scoped_lock lock(mutex_);
    return reached_;
  }
  Worker& owner() { return *owner_; }

 private:
  std::shared_ptr<Worker> owner_;  ///< so that an event may outlive its backend
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::exception_ptr failure_;
};

/// One queue and the thread that works on it, in order.
class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Work that is skipped behind a failure.
  void put(std::function<void()> body) {
    put_always([this, body = std::move(body)] {
      if (failed()) return;
      try {
        body();
      } catch (...) {
        fail(std::current_exception());
      }
    });
  }

  /// Work that is done in any case (events, giving memory back); must not throw.
  void put_always(std::function<void()> body) {
    const std::scoped_lock lock(mutex_);
    work_.push_back(std::move(body));
    if (work_.size() == 1) changed_.notify_one();
  }

  std::exception_ptr failure() {
    const std::scoped_lock lock(mutex_);
    return failure_;
  }
  void fail(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  /// Called by who throws `failure` to its caller.
  void forgive(const std::exception_ptr& failure) {
    const std::scoped_lock lock(mutex_);
    if (failure_ == failure) failure_ = nullptr;
  }

  /// Lets the thread end once its queue is empty.
  void close() {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    changed_.notify_one();
  }
  void join() { thread_.join(); }

 private:
  bool failed() { return failure() != nullptr; }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !work_.empty(); });
      if (work_.empty()) return;
      std::deque<std::function<void()>> batch;
      batch.swap(work_);
      lock.unlock();
      for (; !batch.empty(); batch.pop_front()) batch.front()();  // captures die before the next one runs
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

class AsyncHostBackend final : public Backend {
 public:
  explicit AsyncHostBackend(const AsyncHostOptions& options) : options_(options), random_(options.seed) {}

  ~AsyncHostBackend() override {
    // All are closed before any is joined: queues may wait for one another.
    for (const auto& worker : workers_) worker->close();
    for (const auto& worker : workers_) worker->join();
  }

  std::string name() const override { return "host-async"; }
  bool unified() const override { return false; }

  Queue make_queue() override {
    const std::scoped_lock lock(mutex_);
    workers_.push_back(std::make_shared<Worker>());
    return {static_cast<int>(workers_.size()) - 1};
  }

  void* allocate(std::size_t bytes, Queue) override;
  void release(void* memory, std::size_t bytes, Queue queue) noexcept override;
  void* allocate_staging(std::size_t bytes) override { return staging_.allocate(bytes); }
  void release_staging(void* memory, std::size_t bytes) noexcept override { staging_.release(memory, bytes); }

  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override;
  void clear(void* to, std::size_t bytes, Queue queue) override {
    worker(queue)->put([=] {
      if (bytes > 0) std::memset(to, 0, bytes);
    });
  }
  void submit(Queue queue, std::function<void()> body) override { worker(queue)->put(std::move(body)); }

  Event record(Queue queue) override;
  void wait(Queue queue, const Event& event) override;
  void wait_host(const Event& event) override;
  bool reached(const Event& event) override { return event.state == nullptr || point(event)->reached(); }

  std::chrono::steady_clock::duration longest_wait() const override { return waits_.longest(); }

  MemoryUse device_memory() const override { return device_.use(); }
  MemoryUse staging_memory() const override { return staging_.use(); }

 private:
  WaitList waits_;
  static std::shared_ptr<Point> point(const Event& event) { return std::static_pointer_cast<Point>(event.state); }

  std::shared_ptr<Worker> worker(Queue queue) {
    const std::scoped_lock lock(mutex_);
    if (queue.id < 0 || queue.id >= static_cast<int>(workers_.size())) {
      throw std::logic_error("queue " + std::to_string(queue.id) + " is not of this backend");
    }
    return workers_[static_cast<std::size_t>(queue.id)];
  }

  const AsyncHostOptions options_;
  MemoryPool device_, staging_;
  std::mutex mutex_;  ///< guards what follows
  std::vector<std::shared_ptr<Worker>> workers_;
  std::int64_t allocations_ = 0, asked_bytes_ = 0;
  std::mt19937_64 random_;
};

void* AsyncHostBackend::allocate(std::size_t bytes, Queue) {
  const auto asked = static_cast<std::int64_t>(bytes);
  const std::scoped_lock lock(mutex_);
  const bool fails = ++allocations_ == options_.failing_allocation;
  if (fails || (options_.device_bytes > 0 && asked > options_.device_bytes - asked_bytes_)) {
    throw Error(ExitCode::device, "out of device memory: " + format_size(asked) + " asked for, " +
                                      format_size(asked_bytes_) + " in use: choose smaller --block-rows");
  }
  try {
    void* memory = device_.allocate(bytes);
    asked_bytes_ += asked;
    return memory;
  } catch (const Error& error) {
    throw Error(ExitCode::device, error.what());
  }
}

void AsyncHostBackend::release(void* memory, std::size_t bytes, Queue queue) noexcept {
  if (memory == nullptr) return;
  worker(queue)->put_always([this, memory, bytes] {
    device_.release(memory, bytes);
    const std::scoped_lock lock(mutex_);
    asked_bytes_ -= static_cast<std::int64_t>(bytes);
  });
}

void AsyncHostBackend::copy(void* to, const void* from, std::size_t bytes, Queue queue) {
  std::chrono::microseconds delay{0};
  if (options_.max_copy_delay_us > 0) {
    const std::scoped_lock lock(mutex_);
    delay = std::chrono::microseconds(std::uniform_int_distribution<int>(0, options_.max_copy_delay_us)(random_));
  }
  worker(queue)->put([=] {
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
}

Event AsyncHostBackend::record(Queue queue) {
  auto owner = worker(queue);
  auto made = std::make_shared<Point>(owner);
  owner->put_always([owner = owner.get(), made] { made->reach(owner->failure()); });
  return {made};
}

void AsyncHostBackend::wait(Queue queue, const Event& event) {
  if (event.state == nullptr) return;
  auto waiting = worker(queue);
  waiting->put_always([waiting = waiting.get(), awaited = point(event)] {
    if (auto failure = awaited->wait()) waiting->fail(std::move(failure));
  });
}

void AsyncHostBackend::wait_host(const Event& event) {
  if (event.state == nullptr) return;
  const auto awaited = point(event);
  const WaitList::Entry waiting(waits_);
  if (const auto failure = awaited->wait()) {
    awaited->owner().forgive(failure);
    std::rethrow_exception(failure);
  }
}

}  // namespace

std::unique_ptr<Backend> make_async_host_backend() {
  return make_async_host_backend(AsyncHostOptions{});
}

std::unique_ptr<Backend> make_async_host_backend(const AsyncHostOptions& options) {
  return std::make_unique<AsyncHostBackend>(options);
}

}  // namespace rowmill
