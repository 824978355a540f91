#pragma once
// The kernels around the bodies of kernels/column_walk.hpp: two launches a block of rows.
#include "kernels/column_walk.hpp"
#include "kernels/cuda/launch.cuh"

namespace rowmill::cuda {

using functors::AnyRows;

constexpr std::int64_t walk_threads = 128;  ///< few: small blocks of rows still reach many multiprocessors
// One block a multiprocessor is promised: else the assembler spills a register or two to fit one more in.

template <typename E, typename Task>
__global__ void __launch_bounds__(walk_threads, 1)
    walk_vectors_kernel(AnyRows rows, Task task, std::int64_t groups, typename Task::Part* parts) {
  const std::int64_t index = thread_index();
  if (index < groups * rows.columns / functors::vector_elements<E>)
    functors::walk_vectors<E>(rows, task, groups, index, parts);
}

template <typename Task>
__global__ void __launch_bounds__(walk_threads, 1)
    walk_elements_kernel(AnyRows rows, Task task, std::int64_t groups, typename Task::Part* parts) {
  const std::int64_t index = thread_index();
  if (index < groups * rows.columns) functors::walk_elements(rows, task, groups, index, parts);
}

/// Threads are columns × gatherers; the tree over gatherers has a fixed shape.
template <typename Task>
__global__ void __launch_bounds__(functors::gather_threads)
    gather_kernel(Task task, std::int64_t columns, std::int64_t groups, const typename Task::Part* parts) {
  __shared__ typename Task::Part shared[functors::gather_threads];
  const unsigned width = blockDim.x, x = threadIdx.x, y = threadIdx.y;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * width + x;
  shared[y * width + x] =
      j < columns ? functors::gather<Task>(parts, columns, groups, j, y, blockDim.y) : Task::nothing();
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half) Task::merge(shared[y * width + x], shared[(y + half) * width + x]);
  }
  if (y == 0 && j < columns) task.store(j, shared[x]);
}

template <typename Task>
void walk_columns(const Block& block, const Task& task, std::byte* scratch, cudaStream_t stream, const char* name) {
  const AnyRows rows = functors::any_rows(block);
  if (rows.columns == 0) return;
  auto* const parts = reinterpret_cast<typename Task::Part*>(scratch);
  const std::int64_t groups = functors::row_groups(rows.rows, rows.columns), chains = groups * rows.columns;
  functors::with_element(rows.type, [&](auto element) {
    using E = decltype(element);
    constexpr std::int64_t lanes = functors::vector_elements<E>;
    if (functors::walks_in_vectors(rows, groups, lanes)) {
      walk_vectors_kernel<E>
          <<<blocks_for(chains / lanes, walk_threads), walk_threads, 0, stream>>>(rows, task, groups, parts);
    } else {
      walk_elements_kernel<<<blocks_for(chains, walk_threads), walk_threads, 0, stream>>>(rows, task, groups, parts);
    }
  });
  check_cuda(cudaGetLastError(), name);
  const std::int64_t width = functors::gather_columns(rows.columns);
  const dim3 threads(static_cast<unsigned>(width), static_cast<unsigned>(functors::gather_threads / width));
  gather_kernel<<<blocks_for(rows.columns, width), threads, 0, stream>>>(task, rows.columns, groups, parts);
  check_cuda(cudaGetLastError(), name);
}

}  // namespace rowmill::cuda
