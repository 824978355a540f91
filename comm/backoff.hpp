#pragma once
// How a rank waits: lively at first, then leaving its core to others.
#include <chrono>
#include <thread>

namespace rowmill {

class Backoff {
 public:
  /// Yields for the first milliseconds, then sleeps for a tenth of one at a time.
  void pause() {
    if (std::chrono::steady_clock::now() - began_ < kLively) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kLively{5};
  static constexpr std::chrono::microseconds kNap{100};
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace rowmill
