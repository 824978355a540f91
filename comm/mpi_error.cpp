#include "comm/mpi_error.hpp"

#include <mpi.h>

#include <string>

#include "core/error.hpp"

namespace rowmill {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ExitCode::device,
              std::string(call) + " failed: " + text + "; look at the network and at the other ranks");
}

}  // namespace rowmill
