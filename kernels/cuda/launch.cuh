#pragma once
// How kernels are launched: one thread an element, or fewer threads that stride over the elements.
#include <cuda_runtime.h>

#include <cstdint>

#include "core/cuda_check.hpp"  // after each launch: check_cuda(cudaGetLastError(), its name)

namespace rowmill::cuda {

constexpr std::int64_t block_threads = 256;
/// Blocks of a striding kernel: eight on each of the 132 multiprocessors of an H200. More of them would only wait.
constexpr std::int64_t most_blocks = 1056;

inline unsigned blocks_for(std::int64_t threads, std::int64_t threads_of_block) {
  return static_cast<unsigned>((threads + threads_of_block - 1) / threads_of_block);
}

inline unsigned striding_blocks(std::int64_t elements) {
  const std::int64_t blocks = (elements + block_threads - 1) / block_threads;
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t thread_count() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace rowmill::cuda
