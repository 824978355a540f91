#pragma once
// When reader threads should run ahead of consumers that can read for themselves.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rowmill {

/// How often the calling thread has slept so far: a read that raises it waited for something other than a processor.
std::int64_t voluntary_switches();

/// A consumer that reads its own block finds it in its cache, and nobody has to be woken; so while reads do not sleep
/// (the file is in the page cache), readers only make use of processors that no consumer uses. As soon as a read
/// sleeps, all of them run ahead. Not thread safe.
class PrefetchPolicy {
 public:
  /// `always`: readers run ahead in any case. `cores`: processors for readers and consumers together.
  PrefetchPolicy(bool always, int cores, int readers) : always_(always), cores_(cores), readers_(readers) {}

  bool adaptive() const { return !always_; }

  /// How many readers may read at the same time.
  int readers_allowed() const {
    if (always_ || calm_reads_ < kCalmReads) return readers_;
    return std::clamp(cores_ - static_cast<int>(consumers_.size()), 0, readers_);
  }

  void saw_consumer(int queue) {
    if (!always_ && std::find(consumers_.begin(), consumers_.end(), queue) == consumers_.end()) {
      consumers_.push_back(queue);
    }
  }

  /// After each read. True if more readers may read than before.
  bool saw_read(bool slept) {
    const int before = readers_allowed();
    calm_reads_ = slept ? 0 : std::min(calm_reads_ + 1, kCalmReads);
    return readers_allowed() > before;
  }

 private:
  /// Reads in a row that must not sleep: a disk read ahead by the system sleeps once in several blocks.
  static constexpr int kCalmReads = 32;

  bool always_;
  int cores_, readers_;
  int calm_reads_ = 0;
  std::vector<int> consumers_;
};

}  // namespace rowmill
