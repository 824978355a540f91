#pragma once
// The communicator whose bulk sums go over NCCL, and all else over another communicator. No header of NCCL here: the
// whole logic runs in tests over a double of NCCL's entry points.
#include <chrono>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/nccl_calls.hpp"

namespace rowmill {

struct NcclTimes {
  std::chrono::milliseconds timeout{0};         ///< for one step of NCCL, once all ranks have come to it; 0: for ever
  std::chrono::milliseconds abort_grace{5000};  ///< for NCCL to give up its communicator; then the program ends
};

/// Collective over `ranks`. Before each transfer all ranks meet over `ranks`, where a late one is watched by its
/// heartbeats; so NCCL's own time counts for the transfer alone. A first small sum is made at once: what does not work
/// is known at the start, not at the end of a pass.
///
/// Where NCCL is missing on a rank, is too old, differs among ranks or sums wrongly, every rank throws Error(device)
/// saying why and nothing is announced: the caller may combine over `ranks` instead. Other failures are announced to
/// all and thrown, on other ranks as PeerFailed; NCCL's communicator has been aborted then and a later reduce throws
/// Error(device). A rank on which the abort hangs ends the program (Communicator::end_all).
///
/// The destructor gives NCCL's communicator back: in order if all is well, by an abort during an exception or after a
/// failure was announced. `ranks` and `backend` outlive it.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& ranks, Backend& backend, const NcclLibrary& library,
                                                     NcclTimes times);

}  // namespace rowmill
