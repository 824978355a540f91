#pragma once
// Ranks: bulk reductions and a small control plane beside them. All functions are called from one thread, the one that
// started the World.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/error.hpp"
#include "core/partial.hpp"

namespace rowmill {

/// What a rank says of itself in its heartbeats: what it is doing, and where. Fixed size, plain.
struct Heartbeat {
  enum class Stage : std::int32_t { starting, planning, milling, combining, finishing, writing };
  Stage stage = Stage::starting;
  std::int64_t block = -1;  ///< last block given out on this rank, -1 if none
};
std::string describe(const Heartbeat& heartbeat);  ///< "milling block 17"

/// A failure of one rank.
struct Failure {
  ExitCode code = ExitCode::failed;
  std::optional<std::int64_t> row;  ///< failures with a row: the smallest row is the one reported
  std::string message;              ///< one line
};

/// True if `a` is reported rather than `b`: failures without a row before those with one, then the smaller row.
bool precedes(const Failure& a, const Failure& b);

/// Thrown by reduce, broadcast and gather when a failure was announced, here or elsewhere, or a rank has left: nothing
/// to print, go to agree().
class PeerFailed : public Error {
 public:
  PeerFailed() : Error(ExitCode::device, "another rank failed") {}
};

/// What poll() found out.
struct Verdict {
  bool failed = false;                     ///< some rank has failed: end, and go to agree()
  std::optional<std::int64_t> before_row;  ///< set if the failure belongs to a row: blocks that begin before it go on
  bool stop = false;                       ///< some rank asked all to stop at the next block
};

/// The outcome that all ranks agree on.
struct Agreement {
  bool ok = true;
  ExitCode code = ExitCode::ok;
  int rank = -1;        ///< whose failure is reported
  std::string message;  ///< empty on ranks other than `rank`
};

/// One array to reduce, in place.
struct Reduction {
  void* data = nullptr;
  std::int64_t count = 0;
  ElementKind kind = ElementKind::i64;
  Combine how = Combine::sum;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Combines `count` elements in place over all ranks: i8, i32, i64 by sum, min or max; f64 by min or max. Data may be
  /// device memory of `backend`; it is ordered behind the queue's work and complete on return. Counts may pass 2^31.
  /// Throws PeerFailed when a failure was announced: the data are undefined then. A rank that goes silent meanwhile
  /// ends the program (see poll). Throws std::invalid_argument for other kinds. With count 0 nothing is exchanged.
  virtual void reduce(Backend& backend, void* data, std::int64_t count, ElementKind kind, Combine how, Queue queue) = 0;

  /// Does reduce hand memory that only the device reaches to the library that sums? Else it goes through staging
  /// memory.
  virtual bool reduces_on_device() const { return false; }

  /// As reduce of each, in this order; a communicator may send them together. Ranks give the same list.
  virtual void reduce_all(Backend& backend, std::span<const Reduction> reductions, Queue queue);

  /// `bytes` of `root` on every rank; sizes may differ before and may pass 2^31. Throws as reduce.
  virtual void broadcast(std::vector<std::byte>& bytes, int root) = 0;

  /// Each rank's bytes on rank 0, in order of ranks; empty elsewhere. Throws as reduce.
  virtual std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& bytes) = 0;

  /// To be called every few milliseconds while this rank is busy otherwise: sends and takes in heartbeats and failures.
  /// Cheap: looks at the clock, and works about once a millisecond. A rank that does not call it (nor waits in another
  /// function of this class) for the timeout counts as silent, whatever it is doing.
  /// If a rank has been silent for longer than the timeout, one rank says so on stderr (which rank, since when, what it
  /// was doing) and every rank ends with exit code 4 (MPI_Abort): such a call does not return.
  virtual Verdict poll(const Heartbeat& mine) = 0;

  /// Tells all ranks, at once and without waiting. agree() must follow on every rank. Of several failures announced on
  /// one rank the one that precedes the others counts.
  virtual void announce(const Failure& failure) = 0;

  /// Asks all ranks, at once and without waiting, to stop at the next block. poll() says so everywhere until the next
  /// agreement. Not a failure: transfers go on.
  virtual void request_stop() = 0;

  /// Collective: do all ranks go on? If any failed, all get the same answer: the failure with the smallest row,
  /// failures without a row before those with one, then the lowest rank. Waits for late ranks as poll does. A failure
  /// that this rank announced counts even if `mine` is empty. Afterwards the failures are forgotten and the
  /// communicator can be used on. A rank whose World ends while others agree counts as failed (code 1, no message);
  /// after that the others can only end. If ranks that beat do not come within the timeout after a failure without a
  /// row, the rank that failed says so and every rank ends with its exit code: such a call does not return.
  virtual Agreement agree(const std::optional<Failure>& mine, const Heartbeat& heartbeat) = 0;

  /// For a rank that cannot get to agree(), because something that cannot be interrupted holds it: one line on stderr,
  /// and every rank ends with exit code 4 (MPI_Abort). Of several ranks that call it one speaks.
  [[noreturn]] virtual void end_all(const std::string& text);
};

/// One rank, no MPI.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace rowmill
