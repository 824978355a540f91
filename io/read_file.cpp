#include "io/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.hpp"

namespace rowmill {

namespace {

/// Measured best with two readers; mapping the file was eight times slower (page faults).
constexpr std::size_t kPieceBytes = 1 << 20;

std::int64_t modified(const struct stat& status) {
  return static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
}

}  // namespace

ReadFile::ReadFile(const std::string& path, const std::string& name) : path_(path), name_(name) {
  struct stat status = {};
  // looked at before it is opened: opening a pipe would wait for a writer
  if (::stat(path.c_str(), &status) != 0) throw system_error(ExitCode::input, name + ": cannot be opened", errno);
  if (S_ISDIR(status.st_mode)) throw Error(ExitCode::input, name + ": is a directory: name a file");
  if (!S_ISREG(status.st_mode)) throw Error(ExitCode::input, name + ": is not a regular file: copy it into one");
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw system_error(ExitCode::input, name + ": cannot be opened", errno);
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Error(ExitCode::input, name + ": is not a regular file: copy it into one");
  }
  bytes_ = status.st_size;
  modified_ns_ = modified(status);
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      modified_ns_(other.modified_ns_) {}

ReadFile::~ReadFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::int64_t ReadFile::read_some(std::int64_t offset, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const std::size_t piece = std::min(kPieceBytes, to.size() - done);
    const ssize_t got = ::pread(descriptor_, to.data() + done, piece, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error(ExitCode::input, name_ + ": cannot be read", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<std::int64_t>(done);
}

void ReadFile::check_unchanged(const std::string& path, const std::string& name, std::int64_t bytes,
                               std::int64_t modified_ns) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0)
    throw system_error(ExitCode::input, name + ": is gone while it was read", errno);
  if (status.st_size < bytes) {
    throw Error(ExitCode::input, name + ": is truncated: it had " + std::to_string(bytes) +
                                     " bytes when it was planned, now " + std::to_string(status.st_size) +
                                     ": get the whole file");
  }
  if (status.st_size == bytes && modified(status) == modified_ns) return;
  throw Error(ExitCode::input, name +
                                   ": was written to while it was read, so that its rows may be of two states: run "
                                   "again when nobody writes it, or on a copy");
}

void ReadFile::read(std::int64_t offset, std::span<std::byte> to, std::int64_t row) const {
  const std::int64_t got = read_some(offset, to);
  if (got == static_cast<std::int64_t>(to.size())) return;
  throw Error(ExitCode::input, name_ + ": is truncated: it ends at byte " + std::to_string(offset + got) +
                                   ", in the block of row " + std::to_string(row) + ": get the whole file");
}

}  // namespace rowmill
