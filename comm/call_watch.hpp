#pragma once
// Calls of MPI that wait for other ranks and cannot be interrupted: bounded from beside.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace rowmill {

/// Ends the process with ExitCode::device and one line on stderr if it is not destroyed in time. For calls during which
/// the control plane stands still, or does not stand yet. Makes no MPI calls itself.
class CallWatch {
 public:
  /// `timeout` zero: never. The line: "NOT_ENDED within 1.5 s: ADVICE". Higher ranks wait some seconds longer, so that
  /// one rank speaks and its exit lets the launcher end the others; a rank that the launcher is about to end keeps
  /// quiet.
  CallWatch(std::chrono::milliseconds timeout, std::string not_ended, std::string advice);
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
  ~CallWatch();

 private:
  void watch(std::chrono::milliseconds timeout);

  const std::string not_ended_, advice_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace rowmill
