// What is done with the sums that a library makes of slabs, and with blocks that do not fit their precision.
#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product_bodies.hpp"
#include "kernels/cuda/product_kernels.hpp"
#include "kernels/functors.hpp"

namespace rowmill::cuda {

using functors::AnyRows;

namespace {

constexpr int fold_width = 256;

/// One thread an entry: its slabs in ascending order.
template <typename Sum>
__global__ void __launch_bounds__(fold_width, 1)
    fold_slabs(const Panel panel, std::int64_t slab_elements, std::int64_t columns, const Sum* sums, std::int64_t slabs,
               bool first, double* packed, double* column_sums) {
  const std::int64_t i = panel.first + blockIdx.y;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * fold_width + threadIdx.x;
  if (j > i) return;
  double* const to = (i == columns ? column_sums : packed + i * (i + 1) / 2) + j;
  const Sum* from = sums + blockIdx.y * panel.leading + j;
  double sum = first ? 0.0 : *to;
  for (std::int64_t slab = 0; slab < slabs; ++slab, from += slab_elements) sum += static_cast<double>(*from);
  *to = sum;
}

__global__ void __launch_bounds__(fold_width, 1) undo_offsets(const OffsetCall call) {
  const std::int64_t i = blockIdx.x;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.y) * fold_width + threadIdx.x;
  if (j > i) return;
  double* const entry = call.packed + i * (i + 1) / 2 + j;
  *entry = offset_undone(call, *entry, i, j);
}

__global__ void __launch_bounds__(fold_width, 1)
    check_ranges(const std::uint64_t* greatest, std::int64_t columns, const Range range, std::int32_t* flag) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * fold_width + threadIdx.x;
  if (j < columns && !fits_range(greatest[j], range)) *flag = 1;
}

constexpr int redo_tile = 32, redo_rows = 16, redo_lines = 8, redo_blocks = 1024;

/// A tile's number among those on and below the diagonal, row by row, to its place.
__device__ void tile_place(std::int64_t tile, std::int64_t& i, std::int64_t& j) {
  i = static_cast<std::int64_t>((sqrt(8.0 * static_cast<double>(tile) + 1) - 1) / 2);
  while (i * (i + 1) / 2 > tile) --i;
  while ((i + 1) * (i + 2) / 2 <= tile) ++i;
  j = tile - i * (i + 1) / 2;
}

__device__ double working_value(const AnyRows& rows, const ColumnMap& map, std::int64_t row, std::int64_t column) {
  if (row >= rows.rows || column >= rows.columns) return 0;
  return functors::working_of(map, column)(functors::value_at(rows, row, column));
}

/// Where the flag is set: the whole product in fp64, rows in ascending order. For blocks that do not fit their
/// precision, which are rare: simple rather than fast.
__global__ void __launch_bounds__(redo_tile* redo_lines, 1)
    redo_in_double(const AnyRows rows, const ColumnMap map, const std::int32_t* flag, double* packed) {
  if (*flag == 0) return;
  __shared__ double left[redo_rows][redo_tile], right[redo_rows][redo_tile];
  const std::int64_t across = (rows.columns + redo_tile - 1) / redo_tile;
  for (std::int64_t tile = blockIdx.x; tile < across * (across + 1) / 2; tile += gridDim.x) {
    std::int64_t tile_i, tile_j;
    tile_place(tile, tile_i, tile_j);
    const std::int64_t first_i = tile_i * redo_tile, first_j = tile_j * redo_tile;
    double sums[redo_tile / redo_lines] = {};
    for (std::int64_t row = 0; row < rows.rows; row += redo_rows) {
      __syncthreads();
      for (int r = static_cast<int>(threadIdx.y); r < redo_rows; r += redo_lines) {
        left[r][threadIdx.x] = working_value(rows, map, row + r, first_i + threadIdx.x);
        right[r][threadIdx.x] = working_value(rows, map, row + r, first_j + threadIdx.x);
      }
      __syncthreads();
      for (int r = 0; r < redo_rows; ++r) {
#pragma unroll
        for (int k = 0; k < redo_tile / redo_lines; ++k) {
          sums[k] += left[r][threadIdx.y + k * redo_lines] * right[r][threadIdx.x];
        }
      }
    }
#pragma unroll
    for (int k = 0; k < redo_tile / redo_lines; ++k) {
      const std::int64_t i = first_i + threadIdx.y + k * redo_lines, j = first_j + threadIdx.x;
      if (i < rows.columns && j <= i) packed[i * (i + 1) / 2 + j] = sums[k];
    }
  }
}

template <typename Sum>
void fold_as(const FoldCall& call, cudaStream_t stream) {
  const dim3 blocks(blocks_for(call.panel.end(), fold_width), static_cast<unsigned>(call.panel.count));
  fold_slabs<Sum><<<blocks, fold_width, 0, stream>>>(call.panel, call.panel.elements(), call.plan->columns,
                                                     reinterpret_cast<const Sum*>(call.sums), call.slabs, call.first,
                                                     call.packed, call.column_sums);
  check_cuda(cudaGetLastError(), "sum of slabs");
}

}  // namespace

void fold(const FoldCall& call, cudaStream_t stream) {
  switch (call.plan->factor) {
    case Factor::f64:
      return fold_as<double>(call, stream);
    case Factor::i8:
      return fold_as<std::int32_t>(call, stream);
    default:
      return fold_as<float>(call, stream);
  }
}

void undo_offset(const OffsetCall& call, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(call.columns), blocks_for(call.columns, fold_width));
  undo_offsets<<<blocks, fold_width, 0, stream>>>(call);
  check_cuda(cudaGetLastError(), "correction of offsets");
}

void check_range(const std::uint64_t* greatest, std::int64_t columns, Range range, std::int32_t* flag,
                 cudaStream_t stream) {
  check_ranges<<<blocks_for(columns, fold_width), fold_width, 0, stream>>>(greatest, columns, range, flag);
  check_cuda(cudaGetLastError(), "check of ranges");
}

void redo(const Block& block, ColumnMap map, const std::int32_t* flag, double* packed, cudaStream_t stream) {
  const std::int64_t across = blocks_for(column_count(block.x), redo_tile);
  const std::int64_t blocks = std::min<std::int64_t>(redo_blocks, across * (across + 1) / 2);
  redo_in_double<<<static_cast<unsigned>(blocks), dim3(redo_tile, redo_lines), 0, stream>>>(functors::any_rows(block),
                                                                                            map, flag, packed);
  check_cuda(cudaGetLastError(), "product in fp64");
}

}  // namespace rowmill::cuda
