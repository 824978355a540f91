#include <algorithm>

#include "kernels/cuda/column_walk.cuh"
#include "kernels/cuda/kernels.hpp"

namespace rowmill::cuda {

std::size_t column_scratch(std::int64_t rows, std::int64_t columns) {
  if (columns == 0) return 0;
  constexpr std::size_t part = std::max(sizeof(functors::MomentTask::Part), sizeof(functors::NearestTask::Part));
  return static_cast<std::size_t>(functors::row_groups(rows, columns) * columns) * part;
}

void column_moments(const Block& block, ColumnMap map, ColumnMoments out, std::byte* scratch, cudaStream_t stream) {
  walk_columns(block, functors::MomentTask{map, out}, scratch, stream, "column_moments");
}

}  // namespace rowmill::cuda
