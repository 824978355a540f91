#pragma once
// Who has been silent for how long, seen by one who may have been asleep himself.
#include <algorithm>
#include <chrono>
#include <vector>

namespace rowmill {

/// Silence is counted in attentive time: the time between two looks counts for `longest_step` at most. A rank that was
/// stopped or busy for a minute, and finds the others' messages only afterwards, must not call them silent.
class SilenceWatch {
 public:
  using Clock = std::chrono::steady_clock;

  SilenceWatch(int peers, Clock::time_point now) : heard_(static_cast<std::size_t>(peers)), looked_(now) {}

  void look(Clock::time_point now, Clock::duration longest_step) {
    attentive_ += std::clamp(now - looked_, Clock::duration::zero(), longest_step);
    looked_ = now;
  }
  void heard(int peer) { heard_[static_cast<std::size_t>(peer)] = attentive_; }
  Clock::duration silence(int peer) const { return attentive_ - heard_[static_cast<std::size_t>(peer)]; }

 private:
  std::vector<Clock::duration> heard_;
  Clock::duration attentive_ = Clock::duration::zero();
  Clock::time_point looked_;
};

}  // namespace rowmill
