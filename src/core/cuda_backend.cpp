// Streams, events and memory of one GPU (in the CUDA module only).
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "core/cuda_check.hpp"
#include "core/cuda_events.hpp"
#include "core/cuda_loader.hpp"
#include "core/cuda_module.hpp"
#include "core/cuda_staging.hpp"
#include "core/memory_budget.hpp"
#include "core/numa.hpp"
#include "core/pool.hpp"
#include "core/wait_list.hpp"

namespace rowmill {
namespace {

/// For destructors: whoever waits for the queues has thrown what failed.
void ignore(cudaError_t status, const char* call) noexcept {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  spdlog::debug("{}: {}", call, cudaGetErrorString(status));
}

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, ordinal), "cudaDeviceGetAttribute");
  return value;
}

/// Threads begin on device 0, whichever their backend is on.
void use_device(int ordinal) {
  thread_local int current = -1;
  if (current == ordinal) return;
  check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  current = ordinal;
}

std::int64_t limit_of(std::int64_t wish) {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const auto there = static_cast<std::int64_t>(free);
  return std::max<std::int64_t>(1, wish > 0 ? std::min(wish, there) : there / 10 * 9);
}

/// The stream-ordered allocator's own pool, which keeps what it has.
class DevicePool {
 public:
  explicit DevicePool(int ordinal) {
    if (attribute(cudaDevAttrMemoryPoolsSupported, ordinal) == 0) {
      throw Error(ExitCode::device, "this GPU has no memory pools (a virtual GPU?): use --backend host");
    }
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;  // device memory has no other
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal;
    check_cuda(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    std::uint64_t keep_all = std::numeric_limits<std::uint64_t>::max();
    check_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all), "cudaMemPoolSetAttribute");
  }
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  ~DevicePool() {
    if (pool_ != nullptr) ignore(cudaMemPoolDestroy(pool_), "cudaMemPoolDestroy");
  }

  /// Null if there is no memory.
  void* allocate(std::size_t bytes, cudaStream_t stream) {
    void* memory = nullptr;
    cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
    if (status == cudaErrorMemoryAllocation) {
      // what was freed in smaller pieces may serve when the driver has it back
      cudaGetLastError();
      check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      check_cuda(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
      status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
    }
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check_cuda(status, "cudaMallocFromPoolAsync");
    return memory;
  }

 private:
  cudaMemPool_t pool_ = nullptr;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(int ordinal, std::int64_t memory_limit)
      : ordinal_(on(ordinal)),
        numa_node_(attribute(cudaDevAttrHostNumaId, ordinal)),
        near_(processors_of_node(numa_node_)),
        budget_(limit_of(memory_limit)),
        pool_(ordinal),
        staging_(pinned_memory(numa_node_)),
        events_(std::make_shared<CudaEventPool>()) {}

  ~CudaBackend() override {
    for (const cudaStream_t stream : streams_) {
      ignore(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      ignore(cudaStreamDestroy(stream), "cudaStreamDestroy");
    }
  }

  std::string name() const override { return "cuda"; }
  bool unified() const override { return false; }

  Queue make_queue() override;
  void* allocate(std::size_t bytes, Queue queue) override;
  void release(void* memory, std::size_t bytes, Queue queue) noexcept override;
  void* allocate_staging(std::size_t bytes) override;
  void release_staging(void* memory, std::size_t bytes) noexcept override { staging_.release(memory, bytes); }

  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override {
    if (bytes == 0) return;
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream(queue)), "cudaMemcpyAsync");
  }
  void clear(void* to, std::size_t bytes, Queue queue) override {
    if (bytes == 0) return;
    check_cuda(cudaMemsetAsync(to, 0, bytes, stream(queue)), "cudaMemsetAsync");
  }
  void submit(Queue, std::function<void()>) override {
    throw Error(ExitCode::device, "internal error: host work was put on a queue of a GPU");
  }

  Event record(Queue queue) override;
  void wait(Queue queue, const Event& event) override;
  void wait_host(const Event& event) override;
  bool reached(const Event& event) override;
  std::chrono::steady_clock::duration longest_wait() const override { return waits_.longest(); }

  MemoryUse device_memory() const override { return budget_.use(); }
  MemoryUse staging_memory() const override { return staging_.use(); }

  void* native(Queue queue) override { return stream(queue); }
  void stay_near() override { stay_on(near_); }
  void begin_range(const char* name) override { nvtxRangePushA(name); }
  void end_range() override { nvtxRangePop(); }

 private:
  /// The first thing that happens to a backend.
  static int on(int ordinal) {
    use_device(ordinal);
    return ordinal;
  }

  /// With the device set, which nearly every call needs.
  cudaStream_t stream(Queue queue) {
    use_device(ordinal_);
    const std::scoped_lock lock(mutex_);
    if (queue.id < 0 || queue.id >= static_cast<int>(streams_.size())) {
      throw std::logic_error("queue " + std::to_string(queue.id) + " is not of this backend");
    }
    return streams_[static_cast<std::size_t>(queue.id)];
  }

  static cudaEvent_t event_of(const Event& event) { return static_cast<CudaEvent*>(event.state.get())->get(); }

  const int ordinal_;
  const int numa_node_;
  const std::vector<int> near_;  ///< processors of the node
  MemoryBudget budget_;
  DevicePool pool_;
  MemoryPool staging_;
  const std::shared_ptr<CudaEventPool> events_;
  WaitList waits_;
  std::mutex mutex_;  ///< guards streams_
  std::vector<cudaStream_t> streams_;
};

Queue CudaBackend::make_queue() {
  use_device(ordinal_);
  cudaStream_t made = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  const std::scoped_lock lock(mutex_);
  streams_.push_back(made);
  return {static_cast<int>(streams_.size()) - 1};
}

void* CudaBackend::allocate(std::size_t bytes, Queue queue) {
  const std::size_t asked = std::max<std::size_t>(bytes, 1);
  const cudaStream_t on_stream = stream(queue);
  budget_.take(asked);
  void* memory = nullptr;
  try {
    memory = pool_.allocate(asked, on_stream);
  } catch (...) {
    budget_.give_back(asked);
    throw;
  }
  if (memory == nullptr) {
    budget_.give_back(asked);
    throw_out_of_device_memory(bytes, budget_.use());
  }
  return memory;
}

void CudaBackend::release(void* memory, std::size_t bytes, Queue queue) noexcept {
  if (memory == nullptr) return;
  try {
    ignore(cudaFreeAsync(memory, stream(queue)), "cudaFreeAsync");
  } catch (const std::exception& error) {
    spdlog::debug("device memory is lost: {}", error.what());
  }
  budget_.give_back(std::max<std::size_t>(bytes, 1));
}

void* CudaBackend::allocate_staging(std::size_t bytes) {
  use_device(ordinal_);
  try {
    return staging_.allocate(bytes);
  } catch (const Error& error) {
    throw Error(ExitCode::device, std::string("pinned memory: ") + error.what());
  }
}

Event CudaBackend::record(Queue queue) {
  const cudaStream_t on_stream = stream(queue);
  auto made = std::make_shared<CudaEvent>(events_);
  check_cuda(cudaEventRecord(made->get(), on_stream), "cudaEventRecord");
  return {std::move(made)};
}

void CudaBackend::wait(Queue queue, const Event& event) {
  if (event.state == nullptr) return;
  check_cuda(cudaStreamWaitEvent(stream(queue), event_of(event), 0), "cudaStreamWaitEvent");
}

/// Asks again and again instead of blocking in the driver: what failed on the device is known at once, and nobody
/// keeps a processor busy.
void CudaBackend::wait_host(const Event& event) {
  if (event.state == nullptr) return;
  use_device(ordinal_);
  const WaitList::Entry waiting(waits_);
  constexpr int busy_rounds = 64;
  for (int round = 0;; ++round) {
    const cudaError_t status = cudaEventQuery(event_of(event));
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check_cuda(status, "cudaEventQuery");
    cudaGetLastError();  // "not ready" is no failure of a later launch
    if (round < busy_rounds) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

bool CudaBackend::reached(const Event& event) {
  if (event.state == nullptr) return true;
  use_device(ordinal_);
  const cudaError_t status = cudaEventQuery(event_of(event));
  if (status == cudaSuccess) return true;
  cudaGetLastError();
  return status != cudaErrorNotReady;  // what failed is for wait_host to throw
}

}  // namespace

std::vector<CudaDevice> cuda_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw Error(ExitCode::device, cuda_refusal(static_cast<int>(status)));
  }
  std::vector<CudaDevice> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties = {};
    check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    CudaDevice device;
    device.ordinal = ordinal;
    device.name = properties.name;
    std::memcpy(device.uuid.data(), properties.uuid.bytes, device.uuid.size());
    device.compute_capability = 10 * properties.major + properties.minor;
    device.memory = static_cast<std::int64_t>(properties.totalGlobalMem);
    device.numa_node = attribute(cudaDevAttrHostNumaId, ordinal);
    devices.push_back(std::move(device));
  }
  return devices;
}

std::unique_ptr<Backend> make_cuda_backend(int ordinal, std::int64_t memory_limit) {
  return std::make_unique<CudaBackend>(ordinal, memory_limit);
}

}  // namespace rowmill
