// What is done with every element of two arrays or of two partials.
#include "core/binned_body.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/functors.hpp"

namespace rowmill::cuda {

namespace {

template <typename T, typename Operation>
__global__ void __launch_bounds__(block_threads)
    combine_kernel(T* acc, const T* values, std::int64_t count, Operation operation) {
  ROWMILL_UNROLL_4
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) acc[i] = operation(acc[i], values[i]);
}

template <typename T, typename Operation>
void combine(T* acc, const T* values, std::int64_t count, Operation operation, cudaStream_t stream) {
  if (count == 0) return;
  combine_kernel<<<striding_blocks(count), block_threads, 0, stream>>>(acc, values, count, operation);
  check_cuda(cudaGetLastError(), "combine");
}

__global__ void __launch_bounds__(block_threads) merge_kernel(BinnedView acc, BinnedView other) {
  for (std::int64_t i = thread_index(); i < acc.count; i += thread_count()) binned::merge(acc, other, i);
}

__global__ void __launch_bounds__(block_threads) align_kernel(BinnedView acc, const std::int8_t* tops) {
  for (std::int64_t i = thread_index(); i < acc.count; i += thread_count()) {
    binned::align(acc, i, tops[i]);
    acc.top[i] = tops[i];
  }
}

}  // namespace

void merge_binned(BinnedView acc, BinnedView other, cudaStream_t stream) {
  if (acc.count == 0) return;
  merge_kernel<<<striding_blocks(acc.count), block_threads, 0, stream>>>(acc, other);
  check_cuda(cudaGetLastError(), "merge_binned");
}

void align_binned(BinnedView acc, const std::int8_t* tops, cudaStream_t stream) {
  if (acc.count == 0) return;
  align_kernel<<<striding_blocks(acc.count), block_threads, 0, stream>>>(acc, tops);
  check_cuda(cudaGetLastError(), "align_binned");
}

void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count, cudaStream_t stream) {
  combine(acc, values, count, functors::Add(), stream);
}

void keep_min(double* acc, const double* values, std::int64_t count, cudaStream_t stream) {
  combine(acc, values, count, functors::KeepMin(), stream);
}

void keep_max(double* acc, const double* values, std::int64_t count, cudaStream_t stream) {
  combine(acc, values, count, functors::KeepMax(), stream);
}

void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count, cudaStream_t stream) {
  combine(acc, values, count, functors::KeepMin(), stream);
}

void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count, cudaStream_t stream) {
  combine(acc, values, count, functors::KeepMax(), stream);
}

}  // namespace rowmill::cuda
