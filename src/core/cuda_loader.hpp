#pragma once
// Finds out whether CUDA can be used here, and opens the module if so.
#include <string>
#include <vector>

#include "core/cuda_module.hpp"

namespace rowmill {

struct CudaProbe {
  const CudaModule* module = nullptr;  ///< null: cannot be used
  std::string why_not;                 ///< one clause: "no NVIDIA driver (libcuda.so.1 is not here)"
};

/// Looks for the driver's library and a device (half a millisecond where there is none), then opens librowmill_cuda.so
/// beside the program, in ../lib/rowmill or in ../lib of it. Never throws; looks once a process, whichever thread asks
/// first.
CudaProbe probe_cuda();

/// What probe_cuda looks for.
struct CudaPlaces {
  std::string driver = "libcuda.so.1";  ///< as dlopen takes it
  std::vector<std::string> modules;     ///< paths of the module, the first that is there counts
};

/// One look, at these places. Libraries that were opened stay open. Never throws.
CudaProbe open_cuda(const CudaPlaces& places);

/// Why CUDA cannot be used, as one clause, from a code that the driver (CUresult) or the runtime (cudaError_t, which
/// has the same numbers) gave when it was started or asked for devices.
std::string cuda_refusal(int code);

}  // namespace rowmill
