#include "core/cuda_staging.hpp"

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <set>

#include "core/numa.hpp"

namespace rowmill {

namespace {

constexpr std::size_t worth_mapping = std::size_t{2} << 20;  // what MemoryPool aligns for huge pages

/// Remembers which buffers were mapped and registered, since the rest go back another way.
class PinnedMemory {
 public:
  explicit PinnedMemory(int numa_node) : numa_node_(numa_node) {}

  void* take(std::size_t bytes) {
    if (bytes >= worth_mapping) {
      if (void* memory = take_registered(bytes)) return memory;
    }
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess) return memory;
    cudaGetLastError();
    return nullptr;
  }

  void give_back(void* memory, std::size_t bytes) {
    bool registered = false;
    {
      const std::scoped_lock lock(mutex_);
      registered = registered_.erase(memory) > 0;
    }
    if (!registered) {
      cudaFreeHost(memory);
      return;
    }
    cudaHostUnregister(memory);
    unmap_near(memory, bytes);
  }

 private:
  void* take_registered(std::size_t bytes) {
    void* memory = map_near(bytes, numa_node_);
    if (memory == nullptr) return nullptr;
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) != cudaSuccess) {
      cudaGetLastError();
      unmap_near(memory, bytes);
      return nullptr;
    }
    const std::scoped_lock lock(mutex_);
    registered_.insert(memory);
    return memory;
  }

  const int numa_node_;
  std::mutex mutex_;
  std::set<void*> registered_;
};

}  // namespace

MemorySource pinned_memory(int numa_node) {
  const auto memory = std::make_shared<PinnedMemory>(numa_node);
  return {[memory](std::size_t bytes) { return memory->take(bytes); },
          [memory](void* from, std::size_t bytes) { memory->give_back(from, bytes); }};
}

}  // namespace rowmill
