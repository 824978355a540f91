#pragma once
// Ranks that never come up: until the control plane stands, nobody else can tell.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace rowmill {

/// Ends the process with ExitCode::device and one line on stderr if it is not destroyed in time. For the calls that
/// start MPI: they wait for all ranks and cannot be interrupted. Makes no MPI calls itself.
class StartWatch {
 public:
  /// `timeout` zero: never. Higher ranks wait some seconds longer, so that one rank speaks and its exit lets the
  /// launcher end the others.
  explicit StartWatch(std::chrono::milliseconds timeout);
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;
  ~StartWatch();

 private:
  void watch(std::chrono::milliseconds timeout);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace rowmill
