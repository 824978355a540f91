#include "comm/mpi_communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "comm/backoff.hpp"
#include "comm/call_watch.hpp"
#include "comm/control_plane.hpp"
#include "comm/device_patience.hpp"
#include "comm/mpi_error.hpp"
#include "comm/reducible.hpp"
#include "comm/staging.hpp"

namespace rowmill {
namespace {

// MPI counts are ints, and pieces of this size let the control plane be looked at between them.
constexpr std::int64_t kPieceElements = std::int64_t{1} << 20;
constexpr std::int64_t kPieceBytes = std::int64_t{8} << 20;

MPI_Datatype mpi_type(ElementKind kind) {
  switch (kind) {
    case ElementKind::i8:
      return MPI_INT8_T;
    case ElementKind::i32:
      return MPI_INT32_T;
    case ElementKind::i64:
      return MPI_INT64_T;
    default:
      return MPI_DOUBLE;
  }
}

MPI_Op mpi_op(Combine how) {
  if (how == Combine::min) return MPI_MIN;
  return how == Combine::max ? MPI_MAX : MPI_SUM;
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::chrono::milliseconds timeout, bool cuda_aware) : control_(timeout) {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &origin_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(origin_, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_dup(origin_, &data_), "MPI_Comm_dup");
    int everywhere = cuda_aware ? 1 : 0;
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, origin_), "MPI_Allreduce");
    reduces_on_device_ = everywhere != 0;
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  ~MpiCommunicator() override {
    try {
      control_.leave();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rowmill[%d]: error: %s\n", rank(), error.what());
      MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitCode::device));
    }
    // A communicator on which transfers were abandoned cannot be freed; MPI_Finalize takes it along.
    if (!renewed_ && abandoned_.empty()) {
      MPI_Comm_free(&data_);
      MPI_Comm_free(&origin_);
    }
  }

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }
  ControlPlane& control() { return control_; }
  bool reduces_on_device() const override { return reduces_on_device_; }

  void reduce(Backend& backend, void* data, std::int64_t count, ElementKind kind, Combine how, Queue queue) override;
  void broadcast(std::vector<std::byte>& bytes, int root) override;
  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& bytes) override;

  Verdict poll(const Heartbeat& mine) override {
    control_.set_heartbeat(mine);
    control_.poll();
    return control_.verdict();
  }

  void announce(const Failure& failure) override { control_.announce(failure); }
  void request_stop() override { control_.request_stop(); }

  Agreement agree(const std::optional<Failure>& mine, const Heartbeat& heartbeat) override {
    control_.set_heartbeat(heartbeat);
    Agreement agreement = control_.agree(mine);
    if (!agreement.ok && !control_.deserted()) renew();
    return agreement;
  }

  [[noreturn]] void end_all(const std::string& text) override { control_.end_all(text); }

 private:
  /// A transfer that will never complete, because a rank went to agree() instead, and the memory that MPI may still
  /// use.
  struct Abandoned {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> memory;
  };

  using Hopeless = bool (ControlPlane::*)() const;

  void begin(Hopeless hopeless = &ControlPlane::hopeless) {
    control_.begin_transfer();
    if ((control_.*hopeless)()) throw PeerFailed();
  }

  /// Starts a transfer out of or into piece_ and completes it, or gives both up.
  template <typename Start>
  void transfer(const Start& start, Hopeless hopeless = &ControlPlane::hopeless) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(start(&request), "starting a transfer");
    if (complete(request, hopeless)) return;
    abandoned_.push_back({request, std::exchange(piece_, {})});
    throw PeerFailed();
  }

  bool complete(MPI_Request& request, Hopeless hopeless);
  void reduce_on_device(std::byte* data, std::int64_t count, ElementKind kind, Combine how);
  void broadcast_piece(std::byte* bytes, std::int64_t count, int root);
  void send_piece(const std::byte* bytes, std::int64_t count);
  void receive_piece(std::byte* bytes, std::int64_t count, int from);
  void renew();

  std::vector<std::byte>& piece(std::int64_t bytes) {
    if (static_cast<std::int64_t>(piece_.size()) < bytes) piece_.resize(static_cast<std::size_t>(bytes));
    return piece_;
  }

  ControlPlane control_;
  MPI_Comm origin_ = MPI_COMM_NULL;  // only to make data_ from; nothing is ever abandoned on it
  MPI_Comm data_ = MPI_COMM_NULL;
  std::vector<std::byte> piece_;
  std::vector<Abandoned> abandoned_;
  bool renewed_ = false, reduces_on_device_ = false;
};

/// Waits for the request while the control plane works. False, with the request still open, if it will not complete.
bool MpiCommunicator::complete(MPI_Request& request, Hopeless hopeless) {
  for (Backoff backoff;; backoff.pause()) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return true;
    control_.poll();
    if ((control_.*hopeless)()) return false;
  }
}

void MpiCommunicator::reduce(Backend& backend, void* data, std::int64_t count, ElementKind kind, Combine how,
                             Queue queue) {
  check_reducible(kind, how, count);
  begin();
  // the work before may be long: the control plane must not stand still meanwhile
  wait_for_queue(*this, backend, queue, control_.timeout(), [this] {
    control_.poll();
    if (control_.hopeless()) throw PeerFailed();
  });
  if (reduces_on_device_ && !backend.unified()) {
    reduce_on_device(static_cast<std::byte*>(data), count, kind, how);
    return;
  }
  const auto width = static_cast<std::int64_t>(reducible_bytes(kind));
  const Staging staging(backend, static_cast<std::size_t>(std::min(count, kPieceElements) * width));
  for (std::int64_t done = 0; done < count; done += kPieceElements) {
    const std::int64_t elements = std::min(kPieceElements, count - done);
    const auto bytes = static_cast<std::size_t>(elements * width);
    std::byte* const place = static_cast<std::byte*>(data) + done * width;
    std::byte* const memory = piece(elements * width).data();
    std::byte* const host = staging.data() == nullptr ? place : staging.data();
    if (host != place) {
      backend.copy(host, place, bytes, queue);
      backend.wait_host(backend.record(queue));
    }
    std::memcpy(memory, host, bytes);
    transfer([&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, memory, static_cast<int>(elements), mpi_type(kind), mpi_op(how), data_,
                            request);
    });
    std::memcpy(host, memory, bytes);
    if (host != place) {
      backend.copy(place, host, bytes, queue);
      backend.wait_host(backend.record(queue));
    }
  }
}

/// By calls that wait, since Open MPI's others take no device memory (docs/decisions.md). Each begins when all ranks
/// have come to it; so a late one is watched by its heartbeats, and the call's own time is bounded from beside.
void MpiCommunicator::reduce_on_device(std::byte* data, std::int64_t count, ElementKind kind, Combine how) {
  const auto width = static_cast<std::int64_t>(reducible_bytes(kind));
  for (std::int64_t done = 0; done < count; done += kPieceElements) {
    transfer([this](MPI_Request* request) { return MPI_Ibarrier(data_, request); });
    const CallWatch watch(control_.timeout(), "a sum of device memory by MPI has not ended",
                          "a rank or the network has stopped");
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, data + done * width, static_cast<int>(std::min(kPieceElements, count - done)),
                            mpi_type(kind), mpi_op(how), data_),
              "MPI_Allreduce");
  }
}

/// What ranks mill by.
void MpiCommunicator::broadcast(std::vector<std::byte>& bytes, int root) {
  begin(&ControlPlane::hopeless_before_rows);
  auto size = static_cast<std::int64_t>(bytes.size());
  broadcast_piece(reinterpret_cast<std::byte*>(&size), static_cast<std::int64_t>(sizeof size), root);
  bytes.resize(static_cast<std::size_t>(size));
  for (std::int64_t done = 0; done < size; done += kPieceBytes) {
    broadcast_piece(bytes.data() + done, std::min(kPieceBytes, size - done), root);
  }
}

void MpiCommunicator::broadcast_piece(std::byte* bytes, std::int64_t count, int root) {
  std::byte* const memory = piece(count).data();
  if (rank() == root) std::memcpy(memory, bytes, static_cast<std::size_t>(count));
  const auto start = [&](MPI_Request* request) {
    return MPI_Ibcast(memory, static_cast<int>(count), MPI_BYTE, root, data_, request);
  };
  transfer(start, &ControlPlane::hopeless_before_rows);
  if (rank() != root) std::memcpy(bytes, memory, static_cast<std::size_t>(count));
}

std::vector<std::vector<std::byte>> MpiCommunicator::gather(const std::vector<std::byte>& bytes) {
  begin();
  auto size = static_cast<std::int64_t>(bytes.size());
  if (rank() != 0) {
    send_piece(reinterpret_cast<const std::byte*>(&size), static_cast<std::int64_t>(sizeof size));
    for (std::int64_t done = 0; done < size; done += kPieceBytes) {
      send_piece(bytes.data() + done, std::min(kPieceBytes, size - done));
    }
    return {};
  }
  std::vector<std::vector<std::byte>> all{bytes};
  for (int from = 1; from < this->size(); ++from) {
    receive_piece(reinterpret_cast<std::byte*>(&size), static_cast<std::int64_t>(sizeof size), from);
    std::vector<std::byte>& theirs = all.emplace_back(static_cast<std::size_t>(size));
    for (std::int64_t done = 0; done < size; done += kPieceBytes) {
      receive_piece(theirs.data() + done, std::min(kPieceBytes, size - done), from);
    }
  }
  return all;
}

void MpiCommunicator::send_piece(const std::byte* bytes, std::int64_t count) {
  std::byte* const memory = piece(count).data();
  std::memcpy(memory, bytes, static_cast<std::size_t>(count));
  transfer(
      [&](MPI_Request* request) { return MPI_Isend(memory, static_cast<int>(count), MPI_BYTE, 0, 0, data_, request); });
}

void MpiCommunicator::receive_piece(std::byte* bytes, std::int64_t count, int from) {
  std::byte* const memory = piece(count).data();
  transfer([&](MPI_Request* request) {
    return MPI_Irecv(memory, static_cast<int>(count), MPI_BYTE, from, 0, data_, request);
  });
  std::memcpy(bytes, memory, static_cast<std::size_t>(count));
}

/// After abandoned transfers the old communicator's ranks are out of step: a new one for all.
void MpiCommunicator::renew() {
  renewed_ = true;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(origin_, &data_, &request), "MPI_Comm_idup");
  for (Backoff backoff;; backoff.pause()) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    control_.poll();
  }
}

}  // namespace

MpiParts make_mpi_communicator(std::chrono::milliseconds timeout, bool cuda_aware) {
  auto communicator = std::make_unique<MpiCommunicator>(timeout, cuda_aware);
  ControlPlane* const control = &communicator->control();
  return {std::move(communicator), control};
}

}  // namespace rowmill
