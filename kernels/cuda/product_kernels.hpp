#pragma once
// The CUDA bodies of ProductKernels (product_run.hpp): they queue on a stream of the current device and return. Throw
// Error(device) if a kernel cannot be launched.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/product_run.hpp"

namespace rowmill::cuda {

void convert(const ConvertCall& call, cudaStream_t stream);
void fold(const FoldCall& call, cudaStream_t stream);
void undo_offset(const OffsetCall& call, cudaStream_t stream);
void check_range(const std::uint64_t* greatest, std::int64_t columns, Range range, std::int32_t* flag,
                 cudaStream_t stream);
void redo(const Block& block, ColumnMap map, const std::int32_t* flag, double* packed, cudaStream_t stream);

}  // namespace rowmill::cuda
