#pragma once
// MPI's return codes turned into errors.

namespace rowmill {

/// Throws Error(device) naming the call if `code` is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace rowmill
