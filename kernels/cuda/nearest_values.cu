#include "kernels/cuda/column_walk.cuh"
#include "kernels/cuda/kernels.hpp"

namespace rowmill::cuda {

void nearest_values(const Block& block, const double* targets, double* out, std::byte* scratch, cudaStream_t stream) {
  walk_columns(block, functors::NearestTask{targets, out}, scratch, stream, "nearest_values");
}

}  // namespace rowmill::cuda
