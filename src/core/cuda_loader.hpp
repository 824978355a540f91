#pragma once
// Finds out whether CUDA can be used here, and opens the module if so.
#include <string>

#include "core/cuda_module.hpp"

namespace rowmill {

struct CudaProbe {
  const CudaModule* module = nullptr;  ///< null: cannot be used
  std::string why_not;                 ///< one clause: "no NVIDIA driver (libcuda.so.1 is not here)"
};

/// Looks for the driver's library and a device (half a millisecond where there is none), then opens librowmill_cuda.so
/// beside the program or in ../lib of it. Never throws; loads a module once.
CudaProbe probe_cuda();

}  // namespace rowmill
