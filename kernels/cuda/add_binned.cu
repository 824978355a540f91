// acc[i] += values[i], order-free: the cutting of core/binned_body.hpp, one accumulator a thread. Neighbouring threads
// touch neighbouring digits, so that every access of a warp is whole cache lines.
#include "core/binned_body.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.cuh"

namespace rowmill::cuda {

namespace {

__global__ void __launch_bounds__(block_threads) add_kernel(BinnedView acc, const double* values) {
  for (std::int64_t i = thread_index(); i < acc.count; i += thread_count()) binned::add(acc, i, values[i]);
}

}  // namespace

void add_binned(BinnedView acc, const double* values, cudaStream_t stream) {
  if (acc.count == 0) return;
  add_kernel<<<striding_blocks(acc.count), block_threads, 0, stream>>>(acc, values);
  check_cuda(cudaGetLastError(), "add_binned");
}

}  // namespace rowmill::cuda
