#include "comm/control_link.hpp"

#include <mpi.h>

#include <type_traits>
#include <vector>

#include "comm/mpi_error.hpp"

namespace rowmill {

static_assert(std::is_trivially_copyable_v<ControlMessage>);

namespace {
constexpr int kMessageBytes = static_cast<int>(sizeof(ControlMessage));
}

struct ControlLink::Impl {
  struct Outgoing {
    ControlMessage message;               // must not move while its send is under way
    std::optional<ControlMessage> newer;  // waits for the send
  };

  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::vector<Outgoing> outgoing;
  std::vector<MPI_Request> sends;  // by peer
  std::vector<int> done;           // scratch of MPI_Testsome
  int sends_under_way = 0;
  ControlMessage incoming;
  MPI_Request receive = MPI_REQUEST_NULL;

  void start_send(int peer, const ControlMessage& message) {
    Outgoing& out = outgoing[static_cast<std::size_t>(peer)];
    out.message = message;
    check_mpi(MPI_Issend(&out.message, kMessageBytes, MPI_BYTE, peer, 0, comm, &sends[static_cast<std::size_t>(peer)]),
              "MPI_Issend");
    ++sends_under_way;
  }

  void start_receive() {
    check_mpi(MPI_Irecv(&incoming, kMessageBytes, MPI_BYTE, MPI_ANY_SOURCE, 0, comm, &receive), "MPI_Irecv");
  }
};

ControlLink::ControlLink() : impl_(std::make_unique<Impl>()) {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &impl_->comm), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(impl_->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(impl_->comm, &impl_->rank);
  MPI_Comm_size(impl_->comm, &impl_->size);
  const auto peers = static_cast<std::size_t>(impl_->size);
  impl_->outgoing.resize(peers);
  impl_->sends.resize(peers, MPI_REQUEST_NULL);
  impl_->done.resize(peers);
  impl_->start_receive();
}

ControlLink::~ControlLink() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return;
  MPI_Cancel(&impl_->receive);
  MPI_Wait(&impl_->receive, MPI_STATUS_IGNORE);
  MPI_Comm_free(&impl_->comm);
}

int ControlLink::rank() const {
  return impl_->rank;
}
int ControlLink::size() const {
  return impl_->size;
}

void ControlLink::send(int peer, const ControlMessage& message) {
  if (impl_->sends[static_cast<std::size_t>(peer)] == MPI_REQUEST_NULL) {
    impl_->start_send(peer, message);
  } else {
    impl_->outgoing[static_cast<std::size_t>(peer)].newer = message;
  }
}

void ControlLink::progress() {
  if (impl_->sends_under_way == 0) return;
  int count = 0;
  check_mpi(MPI_Testsome(impl_->size, impl_->sends.data(), &count, impl_->done.data(), MPI_STATUSES_IGNORE),
            "MPI_Testsome");
  if (count == MPI_UNDEFINED) return;
  impl_->sends_under_way -= count;
  for (int i = 0; i < count; ++i) {
    const int peer = impl_->done[static_cast<std::size_t>(i)];
    auto& newer = impl_->outgoing[static_cast<std::size_t>(peer)].newer;
    if (newer) impl_->start_send(peer, *newer);
    newer.reset();
  }
}

std::optional<std::pair<int, ControlMessage>> ControlLink::receive() {
  int come = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&impl_->receive, &come, &status), "MPI_Test");
  if (come == 0) return std::nullopt;
  const std::pair<int, ControlMessage> message{status.MPI_SOURCE, impl_->incoming};
  impl_->start_receive();
  return message;
}

bool ControlLink::idle() const {
  return impl_->sends_under_way == 0;
}

}  // namespace rowmill
