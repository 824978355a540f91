#pragma once
// The wire under the control plane: small messages between ranks of which only the newest counts.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "comm/communicator.hpp"

namespace rowmill {

/// A rank's whole state, or rank 0's view of all: every message replaces those before it, so that none is missed when
/// newer ones overtake it. Plain; sent as bytes between like processes.
struct ControlMessage {
  enum class Kind : std::int32_t { status, verdict, reporting, bye };
  Kind kind = Kind::status;
  Heartbeat::Stage stage = Heartbeat::Stage::starting;  ///< of the sender
  std::int64_t block = -1;
  std::int64_t epoch = 0;     ///< agreements that the sender has behind it; failures belong to the agreement after them
  std::int32_t agreeing = 0;  ///< status: waits in agree
  std::int32_t leaving = 0;   ///< status: waits in leave. verdict: some rank does
  std::int32_t stop = 0;      ///< status: this rank asks all to stop. verdict: some rank does
  std::int32_t failed = 0, code = 0, has_row = 0;    ///< status: this rank's failure. verdict: the worst so far
  std::int32_t outcome_code = 0, outcome_rank = -1;  ///< verdict: of the last agreement; rank -1: all well
  std::int32_t some_left = 0, all_left = 0;          ///< verdict: in the last agreement
  std::int64_t row = 0;
  std::int64_t transfers = 0;  ///< status: bulk transfers begun in this epoch. verdict: the fewest of a leaving rank
};

/// Messages go by synchronous sends, one at a time to each peer: towards a stopped rank nothing piles up.
class ControlLink {
 public:
  ControlLink();  ///< collective over all ranks; MPI must have been started
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;
  ~ControlLink();  ///< collective, if MPI is still up; nothing may be on its way

  int rank() const;
  int size() const;

  /// Sends as soon as the message before has been taken in by the peer; replaces one that waits for that.
  void send(int peer, const ControlMessage& message);

  /// Moves sends on.
  void progress();

  /// The next message that has come, and from whom.
  std::optional<std::pair<int, ControlMessage>> receive();

  /// True if every message has been taken in.
  bool idle() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowmill
