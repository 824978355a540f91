#pragma once
// All MPI is done by one thread, and so is all reading by MPI-IO: other threads ask it, and wait.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "io/mpiio/ballot.hpp"

namespace rowmill {

/// Independent reading: what is asked for is done as soon as the thread comes to serve().
///
/// Collective reading goes in rounds: all ranks read at once, each what it was asked for, or nothing. A call of MPI-IO
/// cannot be left, so ranks vote before each round, without waiting, and nobody is waited for inside a round but ranks
/// that have voted for it. A rank votes when it was asked for something, or knows that it will not be; rounds end when
/// no rank wants more. A rank that fails first sees the vote through that it has given, then votes that all end.
class MpiThread {
 public:
  enum class Mode { independent, collective };

  /// The thread that makes it is the one that does all MPI. `while_waiting` is called in every wait for other ranks
  /// while they open a file, and may throw.
  explicit MpiThread(
      Mode mode, std::function<void()> while_waiting = [] {});
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  Mode mode() const { return mode_; }
  const std::function<void()>& while_waiting() const { return while_waiting_; }

  /// What `guard` gives lives as long as a call of MPI-IO that waits for other ranks: to end the program should it
  /// never end. To be set before a file is opened.
  using Guard = std::function<std::shared_ptr<void>()>;
  void guard_rounds(Guard guard) { guard_ = std::move(guard); }
  std::shared_ptr<void> guard() const { return guard_ ? guard_() : nullptr; }

  /// From any thread: has the work done, throws what it throws. Throws Error(failed) after close().
  void run(const std::function<void()>& work);

  /// As run(), for reading. During a pass of rounds the work is done in one, and told so (true).
  using Reading = std::function<void(bool in_round)>;
  void read(const Reading& work);

  /// From any thread: destroyed on the MPI thread, some time. For what MPI or HDF5 has open.
  void destroy_later(std::shared_ptr<void> object);

  // From here on: on the MPI thread only.

  /// Does what was asked for, waiting `patience` for more of it; for a few milliseconds at most, or one piece of work.
  void serve(std::chrono::milliseconds patience);

  /// From here on nothing is done for others: who waits, or asks, is thrown Error(failed). To be called before anything
  /// that waits for threads that may ask.
  void close() noexcept;

  /// Collective. From the next begin_pass() on, reading goes in rounds. `take_part`: what a rank does in a round if it
  /// was asked for nothing.
  void read_in_rounds(std::function<void()> take_part);

  /// A pass over all rows begins, on all ranks.
  void begin_pass();
  /// This rank wants nothing more: takes part in the others' rounds until nobody does. `poll` is called meanwhile.
  /// Throws what a round threw in which this rank only took part.
  void end_pass(const std::function<void()>& poll);
  /// This rank has failed, and closes: sees its vote through (`poll` is called meanwhile), and makes all end.
  void leave(const std::function<void()>& poll);
  /// Has another rank left? Then what was asked for is not done any more.
  bool was_left() const { return left_; }

 private:
  struct Request {
    Reading work;
    std::promise<void> done;
    bool may_go_in_round = false;
  };

  void ask(Reading work, bool may_go_in_round);
  std::unique_ptr<Request> next(bool in_round);
  static std::exception_ptr done(Request& request, bool in_round);
  bool run_one();
  bool advance();
  bool give_vote();
  void play_round();
  void refuse(bool also_calls) noexcept;
  void nap(std::chrono::milliseconds patience);
  bool rounds_go_on() const { return ballot_ != nullptr && in_pass_ && !over_; }

  const Mode mode_;
  const std::function<void()> while_waiting_;
  Guard guard_;
  const std::thread::id own_thread_ = std::this_thread::get_id();

  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<std::unique_ptr<Request>> requests_;
  std::vector<std::shared_ptr<void>> old_;
  bool closed_ = false, refuses_reading_ = false;

  std::unique_ptr<Ballot> ballot_;
  std::function<void()> take_part_;
  bool in_pass_ = false, ending_ = false, over_ = false, left_ = false;
  std::exception_ptr round_error_;
};

}  // namespace rowmill
