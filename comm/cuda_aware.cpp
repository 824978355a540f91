#include "comm/cuda_aware.hpp"

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>  // defines MPIX_CUDA_AWARE_SUPPORT where the question can be asked
#endif

namespace rowmill {

bool mpi_is_cuda_aware() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace rowmill
