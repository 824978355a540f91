#pragma once
// The CUDA bodies of the operations in kernels/ops.hpp: they queue on a stream of the current device and return. They
// allocate nothing and wait for nothing. Thread safe on different outputs and scratch. Throw Error(device) if a kernel
// cannot be launched.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/binned.hpp"
#include "core/block.hpp"
#include "kernels/ops.hpp"

namespace rowmill::cuda {

/// Scratch of column_moments and nearest_values for blocks of at most so many rows; 64-byte aligned.
std::size_t column_scratch(std::int64_t rows, std::int64_t columns);

void column_moments(const Block& block, ColumnMap map, ColumnMoments out, std::byte* scratch, cudaStream_t stream);
void nearest_values(const Block& block, const double* targets, double* out, std::byte* scratch, cudaStream_t stream);

/// Does nothing if *gate is 0 by then; a null gate is open. A null inexact: that is not asked.
void inspect(const Block& block, const int* gate, std::int64_t* first_missing, std::int64_t* inexact,
             cudaStream_t stream);
/// *gate = does the diagonal of the packed triangle hold a NaN?
void look_at_diagonal(const double* packed, std::int64_t columns, int* gate, cudaStream_t stream);

void add_binned(BinnedView acc, const double* values, cudaStream_t stream);
void merge_binned(BinnedView acc, BinnedView other, cudaStream_t stream);
void align_binned(BinnedView acc, const std::int8_t* tops, cudaStream_t stream);

void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count, cudaStream_t stream);
void keep_min(double* acc, const double* values, std::int64_t count, cudaStream_t stream);
void keep_max(double* acc, const double* values, std::int64_t count, cudaStream_t stream);
void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count, cudaStream_t stream);
void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count, cudaStream_t stream);

}  // namespace rowmill::cuda
