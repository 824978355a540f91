#pragma once
// The communicator over MPI_COMM_WORLD. No type of MPI appears here.
#include <chrono>
#include <memory>

#include "comm/communicator.hpp"

namespace rowmill {

class ControlPlane;

/// A communicator, and the control plane that it runs on (owned by it).
struct MpiParts {
  std::unique_ptr<Communicator> communicator;
  ControlPlane* control = nullptr;
};

/// Collective over all ranks; MPI must have been started by the calling thread and outlive the communicator. The
/// destructor is collective too: it waits until all ranks leave. `cuda_aware`: may MPI be given device memory? It is if
/// that is so on all ranks.
MpiParts make_mpi_communicator(std::chrono::milliseconds timeout, bool cuda_aware);

}  // namespace rowmill
