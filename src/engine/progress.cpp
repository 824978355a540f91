#include "engine/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rowmill {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

ProgressStyle progress_style(const std::string& word) {
  if (word == "none") return ProgressStyle::none;
  if (word == "log") return ProgressStyle::log;
  if (word == "bar") return ProgressStyle::bar;
  if (word == "auto") return isatty(STDERR_FILENO) ? ProgressStyle::bar : ProgressStyle::none;
  throw Error(ExitCode::usage, "--progress must be auto, bar, log or none");
}

Progress::Progress(ProgressStyle style, int pass, std::int64_t blocks, std::int64_t bytes_each)
    : style_(style), pass_(pass), blocks_(blocks), bytes_each_(bytes_each), start_(steady_clock::now()) {
  next_ = start_ + (style == ProgressStyle::bar ? milliseconds(300) : milliseconds(10000));
}

Progress::~Progress() {
  if (printed_ && style_ == ProgressStyle::bar) std::fputs("\r\033[K", stderr);
}

std::string Progress::text(std::int64_t blocks_done, double seconds) const {
  const double share = blocks_ == 0 ? 1 : static_cast<double>(blocks_done) / static_cast<double>(blocks_);
  const double rate = static_cast<double>(blocks_done * bytes_each_) / std::max(seconds, 1e-3);
  std::string line;
  if (pass_ > 0) line.append("pass ").append(std::to_string(pass_ + 1)).append(", ");
  line += std::to_string(static_cast<int>(share * 100)) + "% of this rank's rows, " +
          format_size(static_cast<std::int64_t>(rate)) + "/s";
  if (share > 0) line += ", " + format_duration(seconds * (1 - share) / share) + " left";
  return line;
}

void Progress::update(std::int64_t blocks_done) {
  if (style_ == ProgressStyle::none) return;
  const auto now = steady_clock::now();
  if (now < next_) return;
  const std::string line = text(blocks_done, duration<double>(now - start_).count());
  if (style_ == ProgressStyle::bar) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    next_ = now + milliseconds(200);
  } else {
    std::fprintf(stderr, "rowmill: %s\n", line.c_str());  // asked for by --progress, whatever the log level
    next_ = now + milliseconds(10000);
  }
  printed_ = true;
}

}  // namespace rowmill
