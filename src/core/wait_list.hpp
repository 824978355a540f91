#pragma once
// Which waits of the host for a device have not come back yet, so that somebody else can tell that a device has
// stopped.
#include <chrono>
#include <list>
#include <mutex>

namespace rowmill {

/// Thread safe.
class WaitList {
 public:
  using Clock = std::chrono::steady_clock;

  /// One wait, for as long as it lives.
  class Entry {
   public:
    explicit Entry(WaitList& list) : list_(list) {
      const std::scoped_lock lock(list_.mutex_);
      at_ = list_.since_.insert(list_.since_.end(), Clock::now());
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() {
      const std::scoped_lock lock(list_.mutex_);
      list_.since_.erase(at_);
    }

   private:
    WaitList& list_;
    std::list<Clock::time_point>::iterator at_;
  };

  /// How long the oldest has taken; zero if there is none.
  Clock::duration longest() const {
    const std::scoped_lock lock(mutex_);
    return since_.empty() ? Clock::duration::zero() : Clock::now() - since_.front();
  }

 private:
  mutable std::mutex mutex_;
  std::list<Clock::time_point> since_;  ///< in the order in which they began
};

}  // namespace rowmill
