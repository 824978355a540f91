#pragma once
// The contract for "where" things are computed: memory, in-order queues, events.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rowmill {

/// An in-order lane of work on a backend (a CUDA stream, a worker thread, or the caller itself). A copyable handle;
/// the backend owns what is behind it.
struct Queue {
  int id = -1;
};

/// A point in a queue. Copyable; empty events are always complete.
struct Event {
  std::shared_ptr<void> state;
};

/// Current and highest bytes of one kind of memory.
struct MemoryUse {
  std::int64_t current = 0, high_water = 0;
  std::int64_t limit = 0;  ///< 0: none that the backend knows of
};

/// Thread safety: every function may be called from any thread; work put on one queue by several threads is not
/// ordered among them.
class Backend {
 public:
  virtual ~Backend() = default;

  /// "host", "host-async", "cuda".
  virtual std::string name() const = 0;

  /// True where staging memory is device memory: a slot needs no copy.
  virtual bool unified() const = 0;

  virtual Queue make_queue() = 0;

  /// Device memory, 64-byte aligned at least, from a pool; contents undefined. Throws Error(device) if there is none.
  virtual void* allocate(std::size_t bytes, Queue queue) = 0;
  virtual void release(void* memory, std::size_t bytes, Queue queue) noexcept = 0;

  /// Staging memory (pinned where that means something), 2 MiB aligned and in huge pages for large sizes, from a pool.
  virtual void* allocate_staging(std::size_t bytes) = 0;
  virtual void release_staging(void* memory, std::size_t bytes) noexcept = 0;

  /// Queues a copy between any two buffers of staging and device memory.
  virtual void copy(void* to, const void* from, std::size_t bytes, Queue queue) = 0;

  /// Queues zero bytes.
  virtual void clear(void* to, std::size_t bytes, Queue queue) = 0;

  /// Host backends: runs `body` on the queue. An exception of it is kept and thrown by the next wait_host on that queue
  /// (inline queues throw at once). A CUDA backend has no such function and throws Error(device).
  virtual void submit(Queue queue, std::function<void()> body) = 0;

  virtual Event record(Queue queue) = 0;
  /// The queue waits, the host does not.
  virtual void wait(Queue queue, const Event& event) = 0;
  /// The host waits until the event is reached; rethrows what work before it threw.
  virtual void wait_host(const Event& event) = 0;
  /// True if the event has been reached (does not throw what the work threw).
  virtual bool reached(const Event& event) = 0;
  /// How long the oldest wait_host that has not come back has taken; zero if there is none. Inline queues have none.
  virtual std::chrono::steady_clock::duration longest_wait() const { return {}; }

  /// Gives back to the system what was released, where that is cheap: much less will be allocated from now on, or other
  /// sizes.
  virtual void trim() noexcept {}

  virtual MemoryUse device_memory() const = 0;
  virtual MemoryUse staging_memory() const = 0;

  /// The vendor's handle of a queue (cudaStream_t), for libraries that work on it; null on hosts.
  virtual void* native(Queue) { return nullptr; }

  /// Keeps the calling thread on the processors next to the device, where there are such.
  virtual void stay_near() {}

  /// Names what the calling thread does until end_range, for a profiler (NVTX). Nothing on hosts.
  virtual void begin_range(const char*) {}
  virtual void end_range() {}
};

/// A named range of the calling thread: read, decompress, copy, convert, compute, combine.
class NamedRange {
 public:
  NamedRange(Backend& backend, const char* name) : backend_(backend) { backend_.begin_range(name); }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
  ~NamedRange() { backend_.end_range(); }

 private:
  Backend& backend_;
};

/// Inline queues: work runs in the calling thread at once; staging and device memory are one.
std::unique_ptr<Backend> make_host_backend();

/// One worker thread a queue, separate staging and device memory, real copies. The default in tests of the engine.
std::unique_ptr<Backend> make_async_host_backend();

/// Owns a piece of device memory; released on its queue.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Backend& backend, std::size_t bytes, Queue queue);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  void swap(DeviceBuffer& other) noexcept;

 private:
  Backend* backend_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Queue queue_;
};

}  // namespace rowmill
