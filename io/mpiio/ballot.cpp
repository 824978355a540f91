#include "io/mpiio/ballot.hpp"

#include <mpi.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace rowmill {

namespace {

void check_mpi(int code) {
  if (code != MPI_SUCCESS) {
    throw Error(ExitCode::device, "the ranks that read a file cannot meet: MPI error " + std::to_string(code));
  }
}

}  // namespace

int mpi_world_size() {
  int initialized = 0, size = 1;
  MPI_Initialized(&initialized);
  if (initialized == 0) throw std::logic_error("reading by MPI-IO, but MPI was not started");
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

struct Ballot::Impl {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  int mine = 0, greatest = 0;

  bool tested() {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  }
};

namespace {

template <typename Impl>
void abandon(std::unique_ptr<Impl> impl) {
  static std::vector<std::unique_ptr<Impl>> abandoned;
  abandoned.push_back(std::move(impl));
}

}  // namespace

Ballot::Ballot(const std::function<void()>& while_waiting) : impl_(std::make_unique<Impl>()) {
  check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &impl_->comm, &impl_->request));
  try {
    while (!impl_->tested()) {
      while_waiting();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  } catch (...) {
    abandon(std::move(impl_));
    throw;
  }
}

/// The communicator is not given back: that is for all ranks to do, and some may have failed. MPI's end takes it along.
Ballot::~Ballot() {
  if (under_way()) abandon(std::move(impl_));
}

bool Ballot::under_way() const {
  return impl_->request != MPI_REQUEST_NULL;
}

void Ballot::vote(int value) {
  impl_->mine = value;
  check_mpi(MPI_Iallreduce(&impl_->mine, &impl_->greatest, 1, MPI_INT, MPI_MAX, impl_->comm, &impl_->request));
}

std::optional<int> Ballot::result() {
  if (!impl_->tested()) return std::nullopt;
  return impl_->greatest;
}

}  // namespace rowmill
