#include "io/h5_helper_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/units.hpp"
#include "io/h5_helper/protocol.hpp"
#include "io/h5_helper_answer.hpp"

namespace rowmill {

namespace {

/// Descriptors that are handed to the helper must not lie where the helper expects them; takes a descriptor of its
/// caller's, or the -1 of a call that failed.
int lift(int descriptor, const std::string& what) {
  int error = errno;
  const int lifted = descriptor < 0 ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 16);
  if (descriptor >= 0) {
    if (lifted < 0) error = errno;
    ::close(descriptor);
  }
  if (lifted >= 0) return lifted;
  // EINVAL: the limit leaves no room above the descriptors that the helper expects
  const bool limit = error == EMFILE || (error == EINVAL && descriptor >= 0);
  if (limit)
    throw Error(ExitCode::failed, what + ": too few files may be open at once: raise the limit (ulimit -n 256)");
  throw system_error(ExitCode::failed, what, error);
}

/// A file's own plugins, prefixes and drivers are none of the helper's business: it gets an environment of its own.
std::vector<std::string> helper_environment() {
  std::vector<std::string> result = {"HDF5_USE_FILE_LOCKING=FALSE", "LC_ALL=C"};
  for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = ::getenv(name)) result.push_back(std::string(name) + "=" + value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

class SpawnSettings {
 public:
  SpawnSettings(int socket, int memory) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    // HDF5 and its libraries may say what they like: the helper answers in words of its own
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawn_file_actions_adddup2(&actions, socket, h5::kSocket);
    posix_spawn_file_actions_adddup2(&actions, memory, h5::kSharedMemory);
    posix_spawn_file_actions_addclosefrom_np(&actions, h5::kSharedMemory + 1);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

H5HelperClient::H5HelperClient(const std::string& program, std::string subject, HelperLimits limits,
                               std::size_t shared_bytes)
    : subject_(std::move(subject)), limits_(limits) {
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) lift(-1, "no socket for the HDF5 helper");
  socket_ = ends[0];
  int far_end = -1;
  try {
    far_end = lift(ends[1], "no socket for the HDF5 helper");
    map_shared(shared_bytes);
    start(program, far_end);
  } catch (...) {
    if (far_end >= 0) ::close(far_end);
    end_process();
    throw;
  }
  ::close(far_end);
}

H5HelperClient::~H5HelperClient() {
  end_process();
}

void H5HelperClient::map_shared(std::size_t bytes) {
  memory_ =
      lift(::memfd_create("rowmill-rows", MFD_CLOEXEC | MFD_ALLOW_SEALING), "no shared memory for the HDF5 helper");
  // sealed, so that a helper taken over by a hostile file cannot shrink it under our feet
  if (::ftruncate(memory_, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw system_error(ExitCode::failed, "no shared memory for the HDF5 helper", errno);
  }
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (memory == MAP_FAILED) throw system_error(ExitCode::failed, "no shared memory for the HDF5 helper", errno);
  shared_ = {static_cast<std::byte*>(memory), bytes};
}

void H5HelperClient::start(const std::string& program, int far_end) {
  const SpawnSettings settings(far_end, memory_);
  // the blocks that both have are counted in the helper's address space
  const std::int64_t address_space = limits_.memory_bytes + static_cast<std::int64_t>(shared_.size());
  std::vector<std::string> arguments = {program, std::to_string(address_space)};
  std::vector<std::string> environment = helper_environment();
  const int error = ::posix_spawn(&process_, program.c_str(), &settings.actions, &settings.attributes,
                                  pointers(arguments).data(), pointers(environment).data());
  if (error != 0) {
    process_ = -1;
    throw system_error(ExitCode::failed, "the HDF5 helper " + program + " cannot be started", error);
  }
}

H5HelperClient::Answer H5HelperClient::ask(const nlohmann::json& request, const std::string& tail) {
  if (process_ < 0) throw Error(ExitCode::input, subject_ + ": HDF5 failed on it before");
  const Deadline deadline = std::chrono::steady_clock::now() + limits_.answer_time;
  const std::string text = request.dump();
  h5::MessageHeader header;
  header.json_bytes = static_cast<std::uint32_t>(text.size());
  header.tail_bytes = tail.size();
  if (header.tail_bytes > h5::kMaxTailBytes) throw Error(ExitCode::input, subject_ + ": its name is too long");
  send_all(&header, sizeof header, deadline);
  send_all(text.data(), text.size(), deadline);
  send_all(tail.data(), tail.size(), deadline);

  receive_all(&header, sizeof header, deadline);
  if (header.magic != h5::kMagic || header.json_bytes > h5::kMaxJsonBytes || header.tail_bytes > h5::kMaxTailBytes) {
    fail("the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  }
  std::string answer_text(header.json_bytes, '\0');
  Answer answer;
  answer.tail.resize(header.tail_bytes);
  receive_all(answer_text.data(), answer_text.size(), deadline);
  receive_all(answer.tail.data(), answer.tail.size(), deadline);
  answer.json = nlohmann::json::parse(answer_text, nullptr, false);
  if (!answer.json.is_object()) fail("the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  if (const auto error = answer.json.find("error"); error != answer.json.end()) {
    const auto usage = answer.json.find("usage");
    const bool wrong_usage = usage != answer.json.end() && usage->is_boolean() && usage->get<bool>();
    fail(error->is_string() ? error->get<std::string>().substr(0, 1000) : "HDF5 failed",
         wrong_usage ? ExitCode::usage : ExitCode::input);
  }
  return answer;
}

void H5HelperClient::wait_for(short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) {
      fail("HDF5 gave no answer within " + format_duration(static_cast<double>(limits_.answer_time.count()) / 1000.0) +
           ": the file is damaged or hostile, or its storage hangs");
    }
    pollfd waiting = {socket_, events, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60000)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail(std::string("waiting for the HDF5 helper: ") + std::strerror(errno));
  }
}

void H5HelperClient::send_all(const void* from, std::size_t bytes, Deadline deadline) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    wait_for(POLLOUT, deadline);
    const ssize_t sent = ::send(socket_, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) fail_of_death();
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void H5HelperClient::receive_all(void* to, std::size_t bytes, Deadline deadline) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    wait_for(POLLIN, deadline);
    const ssize_t got = ::recv(socket_, at, bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) fail_of_death();
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

void H5HelperClient::fail(const std::string& what, ExitCode code) {
  end_process();
  throw Error(code, subject_ + ": " + what);
}

void H5HelperClient::fail_of_death() {
  // The socket closed, so that the process is ending; a kill would hide how.
  int status = 0;
  for (int tries = 0; tries < 200; ++tries) {
    const pid_t reaped = ::waitpid(process_, &status, WNOHANG);
    if (reaped == process_) {
      process_ = -1;
      break;
    }
    if (reaped < 0 && errno != EINTR) break;
    ::usleep(5000);
  }
  if (process_ >= 0) status = end_process();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
    fail("HDF5 spent more than " + std::to_string(h5::kMetadataSeconds) +
         " s of processor time on its metadata: it is damaged or hostile");
  }
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM)) {
    fail("the HDF5 helper was killed (signal " + std::to_string(WTERMSIG(status)) +
             "), by somebody or for want of memory: run again, with a lower --memory if the machine was short of it",
         ExitCode::failed);
  }
  if (WIFSIGNALED(status)) {
    fail("HDF5 itself crashed (signal " + std::to_string(WTERMSIG(status)) +
         ") on this file: it is damaged or hostile");
  }
  fail("the HDF5 helper ended (exit " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1) +
       ") on this file: it is damaged or hostile");
}

int H5HelperClient::end_process() {
  int status = 0;
  if (process_ >= 0) {
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
  }
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (!shared_.empty()) ::munmap(shared_.data(), shared_.size());
  shared_ = {};
  if (memory_ >= 0) ::close(std::exchange(memory_, -1));
  return status;
}

}  // namespace rowmill
