#pragma once
// How far rank 0 is, on stderr.
#include <chrono>
#include <cstdint>
#include <string>

namespace rowmill {

enum class ProgressStyle { none, log, bar };

/// "auto" is a bar on a terminal and nothing elsewhere. Throws Error(usage) for other words than auto, bar, log, none.
ProgressStyle progress_style(const std::string& word);

class Progress {
 public:
  /// `bytes_each`: of one block, for the rate.
  Progress(ProgressStyle style, int pass, std::int64_t blocks, std::int64_t bytes_each);
  ~Progress();  ///< ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap; prints at most five times a second (bar) or every ten seconds (log).
  void update(std::int64_t blocks_done);

 private:
  std::string text(std::int64_t blocks_done, double seconds) const;

  ProgressStyle style_;
  int pass_;
  std::int64_t blocks_, bytes_each_;
  std::chrono::steady_clock::time_point start_, next_;
  bool printed_ = false;
};

}  // namespace rowmill
