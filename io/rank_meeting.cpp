#include "io/rank_meeting.hpp"

#include <mpi.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace rowmill {
namespace {

void check_mpi(int code) {
  if (code != MPI_SUCCESS) {
    throw Error(ExitCode::device, "the ranks that write a file cannot meet: MPI error " + std::to_string(code));
  }
}

}  // namespace

struct RankMeeting::Impl {
  std::function<void()> while_waiting;
  MPI_Comm comm = MPI_COMM_NULL;  // null: alone
  int rank = 0, size = 1;
  bool broken = false;  // a wait was given up: MPI may still use the communicator and what was being sent
  std::int64_t number = 0, result = 0;
  std::string text;

  void wait(MPI_Request request) {
    broken = true;
    for (int done = 0;;) {
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done != 0) break;
      while_waiting();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    broken = false;
  }

  std::int64_t reduce(std::int64_t mine, MPI_Op op) {
    if (comm == MPI_COMM_NULL) return mine;
    number = mine;
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(&number, &result, 1, MPI_INT64_T, op, comm, &request));
    wait(request);
    return result;
  }

  std::string text_of(int root, std::string mine) {
    if (comm == MPI_COMM_NULL) return mine;
    text = std::move(mine);
    const auto length =
        static_cast<std::size_t>(reduce(rank == root ? static_cast<std::int64_t>(text.size()) : 0, MPI_MAX));
    text.resize(length);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(text.data(), static_cast<int>(length), MPI_BYTE, root, comm, &request));
    wait(request);
    return text;
  }
};

RankMeeting::RankMeeting(bool alone, std::function<void()> while_waiting) : impl_(std::make_unique<Impl>()) {
  impl_->while_waiting = std::move(while_waiting);
  if (alone) return;
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) throw std::logic_error("several ranks write, but MPI was not started");
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &impl_->comm, &request));
  impl_->wait(request);
  MPI_Comm_rank(impl_->comm, &impl_->rank);
  MPI_Comm_size(impl_->comm, &impl_->size);
}

RankMeeting::~RankMeeting() {
  if (impl_->comm == MPI_COMM_NULL) return;
  if (impl_->broken) {
    // MPI may write into it until MPI_Finalize: it stays until the process ends.
    static std::vector<std::unique_ptr<Impl>> abandoned;
    abandoned.push_back(std::move(impl_));
    return;
  }
  MPI_Comm_free(&impl_->comm);
}

bool RankMeeting::alone() const {
  return impl_->comm == MPI_COMM_NULL;
}
int RankMeeting::rank() const {
  return impl_->rank;
}

void RankMeeting::throw_if_any(const std::optional<Error>& mine) {
  const auto lowest = static_cast<int>(-impl_->reduce(mine ? -impl_->rank : -impl_->size, MPI_MAX));
  if (lowest == impl_->size) return;
  const std::int64_t code =
      impl_->reduce(mine && impl_->rank == lowest ? static_cast<std::int64_t>(mine->code()) : 0, MPI_MAX);
  throw Error(static_cast<ExitCode>(code), impl_->text_of(lowest, mine ? mine->what() : ""));
}

std::string RankMeeting::text_of_rank_zero(std::string text) {
  return impl_->text_of(0, std::move(text));
}

std::int64_t RankMeeting::sum(std::int64_t mine) {
  return impl_->reduce(mine, MPI_SUM);
}

}  // namespace rowmill
