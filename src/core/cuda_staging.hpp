#pragma once
// Pinned memory next to the GPU (in the CUDA module only).
#include "core/pool.hpp"

namespace rowmill {

/// A source of pinned memory on the NUMA node (any if < 0). Pinning is dear (cudaHostAlloc took 8 s for 16 GiB,
/// github.com/rapidsai/rmm/issues/2496): large buffers are mapped and touched by several threads, then registered,
/// which takes half the time. The calling thread has set the device.
MemorySource pinned_memory(int numa_node);

}  // namespace rowmill
