// Kernels around the bodies of kernels/inspect_walk.hpp. Threads that find something tell by an integer minimum, which
// does not depend on their order.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/inspect_walk.hpp"

namespace rowmill::cuda {

namespace {

using functors::AnyRows;

/// Where it is told what was found.
struct Report {
  const int* gate;
  std::int64_t* first_missing;
  std::int64_t* inexact;

  __device__ bool closed() const { return gate != nullptr && *gate == 0; }

  __device__ void missing(const AnyRows& rows, std::int64_t place) const {
    if (place == nothing_missing) return;
    atomicMin(reinterpret_cast<long long*>(first_missing),
              static_cast<long long>(rows.first_row * rows.columns + place));
  }
  /// A special element: missing, or an integer without an exact double.
  __device__ void special(const AnyRows& rows, bool may_be_missing, std::int64_t place) const {
    if (may_be_missing) return missing(rows, place);
    if (place != nothing_missing) atomicMax(reinterpret_cast<long long*>(inexact), 1LL);
  }
};

template <typename E>
__global__ void __launch_bounds__(block_threads) special_vectors_kernel(AnyRows rows, Report report) {
  if (report.closed()) return;
  report.special(rows, E::may_be_missing, functors::special_in_vectors<E>(rows, thread_index(), thread_count()));
}

__global__ void __launch_bounds__(block_threads)
    special_elements_kernel(AnyRows rows, bool may_be_missing, Report report) {
  if (report.closed()) return;
  report.special(rows, may_be_missing, functors::special_in_elements(rows, thread_index(), thread_count()));
}

__global__ void __launch_bounds__(block_threads) mask_kernel(AnyRows rows, Report report) {
  if (report.closed()) return;
  report.missing(rows, functors::first_in_mask(rows, thread_index(), thread_count()));
}

constexpr unsigned diagonal_threads = 1024;

/// One block, so that the gate need not be cleared before.
__global__ void __launch_bounds__(diagonal_threads)
    diagonal_kernel(const double* packed, std::int64_t columns, int* gate) {
  bool found = false;
  for (std::int64_t i = threadIdx.x; i < columns; i += diagonal_threads) {
    const double entry = packed[i * (i + 1) / 2 + i];
    found = found || entry != entry;
  }
  const int any = __syncthreads_or(found ? 1 : 0);
  if (threadIdx.x == 0) *gate = any;
}

}  // namespace

void inspect(const Block& block, const int* gate, std::int64_t* first_missing, std::int64_t* inexact,
             cudaStream_t stream) {
  const AnyRows rows = functors::any_rows(block);
  if (rows.rows == 0 || rows.columns == 0) return;
  const Report report{gate, first_missing, inexact};
  const std::int64_t elements = rows.rows * rows.columns;
  functors::with_element(rows.type, [&](auto element) {
    using E = decltype(element);
    if constexpr (E::may_be_missing || E::may_be_inexact) {
      if (!E::may_be_missing && inexact == nullptr) return;
      if (functors::inspects_in_vectors(rows)) {
        const unsigned blocks = striding_blocks(elements / functors::vector_elements<E> + 1);
        special_vectors_kernel<E><<<blocks, block_threads, 0, stream>>>(rows, report);
      } else {
        special_elements_kernel<<<striding_blocks(elements), block_threads, 0, stream>>>(rows, E::may_be_missing,
                                                                                         report);
      }
      check_cuda(cudaGetLastError(), "inspect");
    }
  });
  if (rows.mask == nullptr) return;
  mask_kernel<<<striding_blocks(elements / 8 + 8), block_threads, 0, stream>>>(rows, report);
  check_cuda(cudaGetLastError(), "inspect");
}

void look_at_diagonal(const double* packed, std::int64_t columns, int* gate, cudaStream_t stream) {
  diagonal_kernel<<<1, diagonal_threads, 0, stream>>>(packed, columns, gate);
  check_cuda(cudaGetLastError(), "inspect_product");
}

}  // namespace rowmill::cuda
