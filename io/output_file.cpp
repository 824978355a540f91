#include "io/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/error.hpp"

namespace rowmill {
namespace {

constexpr std::size_t kWritePiece = std::size_t{64} << 20;

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of_file(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Error cannot_write(const std::string& path, int error_number) {
  Error reason = system_error(ExitCode::failed, "cannot write " + path, error_number);
  if (error_number != ENOSPC && error_number != EDQUOT) return reason;
  return {ExitCode::failed, std::string(reason.what()) + "; free some space or choose another output"};
}

/// Tries names ".NAME.PID.partial" beside `path` until `make` makes a file of that name.
template <typename Make>
void first_free_name(const std::string& path, const Make& make) {
  // the name is cut where the file system's limit of 255 bytes would refuse the longer temporary
  const std::string stem = folder_of(path) + "/." + name_of_file(path).substr(0, 200) + "." + std::to_string(getpid());
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (make(stem + (attempt == 0 ? std::string() : std::string("-").append(std::to_string(attempt))) + ".partial")) {
      return;
    }
    if (errno != EEXIST) break;
  }
  throw cannot_write(path, errno);
}

[[noreturn]] void refuse_new_file(const std::string& path) {
  throw Error(ExitCode::usage, "output " + path + " has appeared meanwhile; choose another or give --overwrite");
}

/// Some file systems cannot sync and say so; that is not a failure of ours.
bool sync_failed(int descriptor) {
  return fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP;
}

}  // namespace

void check_output_path(const std::string& path, bool overwrite) {
  if (name_of_file(path).empty()) throw Error(ExitCode::usage, "output '" + path + "' names no file; give a file name");
  const std::string folder = folder_of(path);
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) {
    throw system_error(ExitCode::usage, "cannot write to folder " + folder + " (make it, or choose another output)",
                       errno);
  }
  if (!S_ISDIR(status.st_mode)) throw Error(ExitCode::usage, folder + " is not a folder; choose another output");
  const long longest = pathconf(folder.c_str(), _PC_NAME_MAX);
  if (longest > 0 && name_of_file(path).size() > static_cast<std::size_t>(longest)) {
    throw Error(ExitCode::usage, "the name of output " + path + " is longer than the " + std::to_string(longest) +
                                     " bytes of this file system: choose a shorter one");
  }
  if (lstat(path.c_str(), &status) == 0) {
    const bool link = S_ISLNK(status.st_mode);
    if (link && stat(path.c_str(), &status) != 0) status.st_mode = S_IFREG;  // a link to nowhere is replaced
    if (S_ISDIR(status.st_mode)) throw Error(ExitCode::usage, "output " + path + " is a folder; give a file name");
    // renaming onto a device or a pipe would replace it
    if (!S_ISREG(status.st_mode))
      throw Error(ExitCode::usage, "output " + path + " is not a regular file; choose another");
    if (!overwrite) throw Error(ExitCode::usage, "output " + path + " exists; choose another or give --overwrite");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw system_error(ExitCode::usage, "cannot write to folder " + folder + " (choose another output)", errno);
  }
}

OutputFile::OutputFile(std::string path, bool overwrite, Temporary temporary)
    : path_(std::move(path)), folder_(folder_of(path_)), overwrite_(overwrite) {
  check_output_path(path_, overwrite_);
  if (temporary == Temporary::named || !create_unnamed()) create_named();
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!committed_ && named_ && !temporary_.empty()) unlink(temporary_.c_str());
}

/// False where the file system, or the lack of /proc, does not allow it.
bool OutputFile::create_unnamed() {
  descriptor_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return false;
  temporary_ = "/proc/self/fd/" + std::to_string(descriptor_);
  named_ = false;
  if (access(temporary_.c_str(), W_OK) == 0) return true;
  close(std::exchange(descriptor_, -1));
  named_ = true;
  return false;
}

void OutputFile::create_named() {
  first_free_name(path_, [this](const std::string& name) {
    descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    temporary_ = descriptor_ >= 0 ? name : std::string();
    return descriptor_ >= 0;
  });
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kWritePiece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw cannot_write(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  if (sync_failed(descriptor_)) throw cannot_write(path_, errno);
  if (!named_) link_to_output();
  // network file systems report a full disk as late as here
  if (close(std::exchange(descriptor_, -1)) != 0) throw cannot_write(path_, errno);
  if (named_) rename_to_output(temporary_);
  committed_ = true;
  const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written but not read
  const bool failed = sync_failed(folder);
  const int reason = errno;
  close(folder);
  if (failed) throw cannot_write(path_, reason);
}

void OutputFile::link_to_output() {
  const auto link_as = [this](const std::string& name) {
    return linkat(AT_FDCWD, temporary_.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link_as(path_)) return;
  if (errno != EEXIST) throw cannot_write(path_, errno);
  if (!overwrite_) refuse_new_file(path_);
  std::string name;
  first_free_name(path_, [&](const std::string& free) { return link_as(name = free); });
  try {
    rename_to_output(name);
  } catch (...) {
    unlink(name.c_str());
    throw;
  }
}

void OutputFile::rename_to_output(const std::string& from) {
  if (!overwrite_) {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) return;
    if (errno == EEXIST) refuse_new_file(path_);
    // not every file system can refuse to replace: look first there
    if (errno != EINVAL && errno != ENOSYS) throw cannot_write(path_, errno);
    check_output_path(path_, false);
  }
  if (rename(from.c_str(), path_.c_str()) != 0) throw cannot_write(path_, errno);
}

void OutputFile::discard_contents() noexcept {
  if (truncate(temporary_.c_str(), 0) != 0) return;  // nothing more can be done for it
}

}  // namespace rowmill
