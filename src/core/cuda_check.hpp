#pragma once
// The one checked wrapper of CUDA runtime calls (in the CUDA module only).
#include <cuda_runtime_api.h>

#include <string>

#include "core/error.hpp"

namespace rowmill {

/// Throws Error(device) with the call's name and what the runtime says of it. As `call` give the name alone.
inline void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // else the next launch of this thread would be blamed for it
  throw Error(ExitCode::device, std::string(call) + ": " + cudaGetErrorString(status) + " (CUDA error " +
                                    std::to_string(static_cast<int>(status)) + ")");
}

}  // namespace rowmill
