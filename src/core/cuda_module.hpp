#pragma once
// What librowmill_cuda.so, the module that holds all CUDA code, hands to the program: a table of functions. The program
// itself links no vendor library. No CUDA header here.
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.hpp"

namespace rowmill {

class Communicator;
class Ops;

struct CudaDevice {
  int ordinal = 0;
  std::string name;  ///< "NVIDIA H200"
  std::array<std::uint8_t, 16> uuid = {};
  int compute_capability = 0;  ///< 90 for 9.0
  std::int64_t memory = 0;  ///< bytes; what is free of it is asked only where a device is used: asking costs a context
  int numa_node = -1;       ///< -1: unknown
};

/// Every function throws Error(device) with what the driver said. Objects must not outlive the process's use of the
/// module, which is never unloaded.
struct CudaModule {
  const char* version;  ///< of the build: a module of another build is refused

  std::vector<CudaDevice> (*devices)();

  /// `memory_limit` bytes of device memory at most, and not more than is free; 0: nine tenths of what is free.
  std::unique_ptr<Backend> (*make_backend)(int ordinal, std::int64_t memory_limit);

  /// `backend` is one of make_backend and outlives the Ops.
  std::unique_ptr<Ops> (*make_ops)(Backend& backend);

  /// Collective over `ranks`, which does all but the bulk reductions and outlives the communicator. Ranks on different
  /// devices only.
  std::unique_ptr<Communicator> (*make_nccl_communicator)(Communicator& ranks, Backend& backend,
                                                          std::chrono::milliseconds timeout);
};

/// The name under which the module exports `const rowmill::CudaModule* (*)()`.
constexpr const char* cuda_module_symbol = "rowmill_cuda_module";

}  // namespace rowmill
