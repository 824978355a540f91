#pragma once
// CUDA events, reused: making one takes a call of the driver, and every block records several.
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/cuda_check.hpp"

namespace rowmill {

/// Thread safe. Events hold it, so that they may outlive the backend. The calling thread has set the device.
class CudaEventPool {
 public:
  CudaEventPool() = default;
  CudaEventPool(const CudaEventPool&) = delete;
  CudaEventPool& operator=(const CudaEventPool&) = delete;
  ~CudaEventPool() {
    for (const cudaEvent_t event : free_) cudaEventDestroy(event);
  }

  cudaEvent_t take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        const cudaEvent_t event = free_.back();
        free_.pop_back();
        return event;
      }
      free_.reserve(++made_);  // so that give_back cannot fail
    }
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return event;
  }

  void give_back(cudaEvent_t event) noexcept {
    const std::scoped_lock lock(mutex_);
    free_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
  std::size_t made_ = 0;
};

/// What an Event of the CUDA backend holds.
class CudaEvent {
 public:
  explicit CudaEvent(std::shared_ptr<CudaEventPool> pool) : pool_(std::move(pool)), event_(pool_->take()) {}
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() { pool_->give_back(event_); }

  cudaEvent_t get() const { return event_; }

 private:
  std::shared_ptr<CudaEventPool> pool_;
  cudaEvent_t event_;
};

}  // namespace rowmill
