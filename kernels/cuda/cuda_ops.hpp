#pragma once
// The operations on one CUDA device. Linked into librowmill_cuda.so only, which hands it out by its table.
#include <memory>

#include "kernels/ops.hpp"

namespace rowmill {

/// `backend` is a CUDA backend and outlives the Ops. Throws Error(device).
std::unique_ptr<Ops> make_cuda_ops(Backend& backend);

}  // namespace rowmill
