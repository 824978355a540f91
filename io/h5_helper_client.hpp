#pragma once
// The program's end of the HDF5 helper: starts it, asks it, and takes nothing it says on trust.
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace rowmill {

struct HelperLimits {
  std::int64_t memory_bytes = 1LL << 30;         ///< address space of the helper
  std::chrono::milliseconds answer_time{60000};  ///< for one answer
};

/// One helper process for one file. Not thread safe. Every failure, the helper's death included, is an Error(input)
/// that begins with `subject` (a file, or file and data set); after one the helper is gone and every call throws.
class H5HelperClient {
 public:
  /// Starts `program` with `shared_bytes` of memory that both have. Throws Error(failed) if it cannot be started.
  H5HelperClient(const std::string& program, std::string subject, HelperLimits limits, std::size_t shared_bytes);
  H5HelperClient(const H5HelperClient&) = delete;
  H5HelperClient& operator=(const H5HelperClient&) = delete;
  ~H5HelperClient();  ///< ends the process

  struct Answer;
  /// Sends a request and waits for its answer; an answer {"error": …} is thrown.
  Answer ask(const nlohmann::json& request, const std::string& tail);

  /// What failures begin with from now on.
  void talk_about(std::string subject) { subject_ = std::move(subject); }

  std::span<const std::byte> shared() const { return shared_; }
  pid_t process() const { return process_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  void map_shared(std::size_t bytes);
  void start(const std::string& program, int far_end);
  void send_all(const void* from, std::size_t bytes, Deadline deadline);
  void receive_all(void* to, std::size_t bytes, Deadline deadline);
  void wait_for(short events, Deadline deadline);
  [[noreturn]] void fail(const std::string& what, ExitCode code = ExitCode::input);
  [[noreturn]] void fail_of_death();
  int end_process();  ///< kills and reaps; the wait status

  std::string subject_;
  HelperLimits limits_;
  int socket_ = -1, memory_ = -1;
  pid_t process_ = -1;
  std::span<std::byte> shared_;
};

}  // namespace rowmill
