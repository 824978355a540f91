#pragma once
// Heartbeats, failures and agreements among ranks, beside the bulk data and independent of them.
//
// A star: every rank tells rank 0 its state, rank 0 tells every rank what follows from all states; once an interval,
// and at once when something changes. Ranks watch rank 0 for silence, rank 0 watches all.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/control_link.hpp"
#include "comm/silence_watch.hpp"

namespace rowmill {

class ControlPlane {
 public:
  using Clock = std::chrono::steady_clock;

  /// Collective over all ranks of MPI_COMM_WORLD, as is the destructor. `timeout` zero: for ever.
  /// While it lives, SIGTERM makes the lowest rank that is left say so in one line before all end: launchers send it
  /// to the others when a rank has died.
  explicit ControlPlane(std::chrono::milliseconds timeout);
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;
  ~ControlPlane();

  /// Has SIGTERM come? From any thread.
  static bool termination_asked();

  int rank() const { return link_.rank(); }
  int size() const { return link_.size(); }
  void set_timeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const { return timeout_; }

  /// What this rank is doing, for its heartbeats.
  void set_heartbeat(const Heartbeat& heartbeat) { heartbeat_ = heartbeat; }
  const Heartbeat& heartbeat() const { return heartbeat_; }

  /// Does a round of work if the last one is a millisecond ago. Does not return if a rank was silent for too long.
  void poll();

  /// What is known of failures since the last agreement.
  Verdict verdict() const;

  /// Before each reduce, broadcast or gather.
  void begin_transfer() { ++mine().transfers; }
  /// True if some rank left at the last agreement: nothing can be done together any more but to leave.
  bool deserted() const { return verdict_.some_left != 0; }
  /// True if the transfer that this rank has begun will not end: some rank failed, or leaves without having begun it.
  bool hopeless() const { return verdict().failed || will_not_end(); }
  /// The same for a transfer that ranks do before they mill: a failure that belongs to a row ends none of these, or a
  /// rank that is late to begin would never look whether it has an earlier row.
  bool hopeless_before_rows() const {
    const Verdict now = verdict();
    return (now.failed && !now.before_row) || will_not_end();
  }

  void announce(const Failure& failure);
  void request_stop();

  /// Collective. The rank with the failure that counts finds its message in the result.
  Agreement agree(const std::optional<Failure>& mine);

  /// One line for all ranks, then MPI_Abort. Of several ranks that call it the lowest speaks.
  [[noreturn]] void end_all(const std::string& text);

  /// Collective: waits until every rank leaves. Ranks that wait in agree meanwhile are told that this one failed.
  void leave();

 private:
  bool will_not_end() const { return deserted() || (verdict_.leaving != 0 && verdict_.transfers < mine().transfers); }

  void work();
  void take_in(int from, const ControlMessage& message);
  void take_verdict(const ControlMessage& message);
  void count_states();
  void conclude();
  void enter_epoch(const ControlMessage& outcome);
  void publish();
  void check_silence();
  void flush();
  [[noreturn]] void report_silence(int silent, Clock::duration silence);
  void check_termination();
  void say_for_all(const std::string& text);
  [[noreturn]] void say_and_abort(const std::string& text, ExitCode code = ExitCode::device);
  void check_lingering(Clock::time_point since);
  void watch_for_termination();
  [[noreturn]] void end_quietly();

  ControlMessage& mine() { return states_[static_cast<std::size_t>(rank())]; }
  const ControlMessage& mine() const { return states_[static_cast<std::size_t>(rank())]; }
  bool is_hub() const { return rank() == 0; }

  ControlLink link_;
  SilenceWatch watch_;
  std::chrono::milliseconds timeout_{0}, interval_{0};
  Heartbeat heartbeat_;
  std::optional<Failure> failure_;      // announced here, since the last agreement
  std::vector<ControlMessage> states_;  // newest by rank; other ranks than 0 know only their own and rank 0's
  ControlMessage verdict_;              // rank 0: as published; others: as received
  bool changed_ = false;                // publish without waiting for the interval
  bool closing_ = false;                // all ranks leave: no more heartbeats
  int byes_ = 0;
  bool overslept_ = false;                       // this rank did not come to work for a long time
  std::optional<Clock::time_point> terminated_;  // when SIGTERM was seen
  Clock::time_point worked_, published_;
};

}  // namespace rowmill
