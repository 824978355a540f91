#pragma once
// Where a rank computes and how ranks combine: chosen once, the same kind on all ranks.
#include <functional>
#include <memory>
#include <string>

#include "comm/world.hpp"
#include "core/backend.hpp"
#include "core/cuda_loader.hpp"
#include "engine/device_choice.hpp"
#include "kernels/ops.hpp"

namespace rowmill {

/// Members are destroyed in the order that their uses demand.
struct Device {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Communicator> nccl;  ///< null: bulk sums go over the world's communicator
  std::string why_host;                ///< why auto did not take CUDA; empty if it did or was not asked to
  std::string warning;                 ///< to be said once, by rank 0

  Communicator& bulk(Communicator& ranks) const { return nccl ? *nccl : ranks; }
  /// How bulk sums travel: "self", "mpi" or "nccl".
  std::string comm(const World& world) const { return nccl ? "nccl" : world.alone() ? "self" : "mpi"; }
};

/// Looks for CUDA; tests give another one.
using CudaProber = std::function<CudaProbe()>;

/// Collective over the world. CUDA is taken by "auto" when every rank has a device; device of a rank: the only visible
/// one, else local rank modulo their number. Two ranks on one device combine by MPI, with a warning. Throws
/// Error(device) on every rank if "cuda" or "nccl" was asked for and cannot be had, or PeerFailed where another rank's
/// announcement of it came first.
Device choose_device(const DeviceWish& wish, World& world, const CudaProber& probe = probe_cuda);

}  // namespace rowmill
