#pragma once
// The one exception type of rowmill, and the exit codes it carries.
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace rowmill {

/// Exit codes of the program (a promise to users; see README).
enum class ExitCode : int {
  ok = 0,
  failed = 1,   ///< failed while running
  usage = 2,    ///< wrong usage, or the machine's limits do not allow it
  input = 3,    ///< the input cannot be used
  device = 4,   ///< device or communication failed
  requeue = 75  ///< stopped on request
};

/// An error that ends the run. `what()` is one line: what happened, where, what to do.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(one_line(message)), code_(code) {}

  /// An error that is decided by its row, such as the first missing value: ranks with earlier rows finish theirs, and
  /// the error with the smallest row is reported. Other errors end all ranks at once and only name a row in words.
  Error(ExitCode code, const std::string& message, std::int64_t row) : Error(code, message) { row_ = row; }

  ExitCode code() const noexcept { return code_; }
  std::optional<std::int64_t> row() const noexcept { return row_; }

 private:
  static std::string one_line(const std::string& message);

  ExitCode code_;
  std::optional<std::int64_t> row_;
};

/// Error for a failed system call: `what: strerror(errno)`.
Error system_error(ExitCode code, const std::string& what, int error_number);

}  // namespace rowmill
