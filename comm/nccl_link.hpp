#pragma once
// One communicator of NCCL: made, waited for, given up. Every wait looks at NCCL's state, at the other ranks and at the
// clock.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/nccl_calls.hpp"
#include "comm/nccl_reduce.hpp"

namespace rowmill {

class NcclLink {
 public:
  struct Transfer {
    void* data = nullptr;
    std::size_t count = 0;
    NcclCalls::Type type = NcclCalls::Type::int8;
    NcclCalls::Op op = NcclCalls::Op::sum;
  };

  /// Makes nothing yet.
  NcclLink(Communicator& ranks, NcclCalls calls, NcclTimes times);
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;
  ~NcclLink();

  /// Rank 0: the id that all ranks connect with.
  NcclCalls::Id make_id();
  /// Collective; all ranks have the id and come at about the same time.
  void connect(const NcclCalls::Id& id);
  /// Puts the transfers on `stream`, all at once; they are there on return.
  void enqueue(const std::vector<Transfer>& transfers, void* stream);
  /// Waits until `done` says so and NCCL has nothing against it, for the timeout at most.
  void wait(const std::string& what, const std::function<bool()>& done) { wait(what, done, times_.timeout); }
  /// Makes NCCL give up whatever it does. If that hangs, every rank ends with a line that begins with `cause`.
  /// Afterwards the link is not usable().
  void abort(const std::string& cause) noexcept;

  bool usable() const { return comm_ != nullptr; }

  // connect, enqueue and wait throw PeerFailed when another rank has failed, else Error(device). abort is to follow.

 private:
  void wait(const std::string& what, const std::function<bool()>& done, std::chrono::milliseconds limit);
  void check(int result, const std::string& what) const;
  bool poll() noexcept;
  void close();
  void call_with_grace(const std::function<int(NcclCalls::Comm)>& call, const std::string& cause);

  Communicator& ranks_;
  const NcclCalls calls_;
  const NcclTimes times_;
  const int exceptions_;  ///< in flight when this was made
  NcclCalls::Comm comm_ = nullptr;
};

}  // namespace rowmill
