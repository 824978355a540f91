// The table that the module exports (in the CUDA module only).
#include "core/cuda_module.hpp"

#include "rowmill_version.hpp"

namespace rowmill {

// each in its room: core/cuda_backend.cpp, kernels/cuda/cuda_ops.cpp, comm/nccl_communicator.cpp
std::vector<CudaDevice> cuda_devices();
std::unique_ptr<Backend> make_cuda_backend(int ordinal, std::int64_t memory_limit);
std::unique_ptr<Ops> make_cuda_ops(Backend& backend);
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& ranks, Backend& backend,
                                                     std::chrono::milliseconds timeout);

}  // namespace rowmill

extern "C" const rowmill::CudaModule* rowmill_cuda_module() {
  static const rowmill::CudaModule module = {rowmill::version, rowmill::cuda_devices, rowmill::make_cuda_backend,
                                             rowmill::make_cuda_ops, rowmill::make_nccl_communicator};
  return &module;
}
