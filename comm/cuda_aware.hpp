#pragma once
// What the MPI at hand does with memory of GPUs.

namespace rowmill {

/// Does this MPI say, at run time, that it takes memory of NVIDIA GPUs? Open MPI can be asked (MPIX_Query_cuda_support,
/// docs.open-mpi.org, "CUDA"); of others no is assumed. MPI must have been started.
bool mpi_is_cuda_aware();

}  // namespace rowmill
