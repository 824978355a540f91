// Preloaded into a program: appends a line for each open and read of the file $ROWMILL_NOTED, and for each program that
// is started, to $ROWMILL_NOTES: "open -1 0", "read OFFSET BYTES", "start -1 0".
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

void note(const char* what, long long offset, long long bytes) {
  const char* notes = std::getenv("ROWMILL_NOTES");
  if (notes == nullptr) return;
  std::array<char, 96> line{};
  const int length = std::snprintf(line.data(), line.size(), "%s %lld %lld\n", what, offset, bytes);
  const int file = next<int(const char*, int, ...)>("open")(notes, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || write(file, line.data(), static_cast<std::size_t>(length)) != length) std::abort();
  close(file);
}

bool is_noted(const char* path) {
  const char* noted = std::getenv("ROWMILL_NOTED");
  return noted != nullptr && path != nullptr && std::strcmp(path, noted) == 0;
}

/// Whatever descriptor it is read by.
bool is_noted(int descriptor) {
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  return readlink(link.data(), path.data(), path.size() - 1) > 0 && is_noted(path.data());
}

int note_open(const char* name, const char* path, int flags, mode_t mode) {
  const int result = next<int(const char*, int, ...)>(name)(path, flags, mode);
  if (result >= 0 && is_noted(path)) note("open", -1, 0);
  return result;
}

ssize_t note_pread(const char* name, int descriptor, void* to, std::size_t bytes, off_t offset) {
  const ssize_t result = next<ssize_t(int, void*, std::size_t, off_t)>(name)(descriptor, to, bytes, offset);
  if (is_noted(descriptor)) note("read", offset, result);
  return result;
}

mode_t mode_of(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return note_open("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return note_open("open64", path, flags, mode);
}

ssize_t pread(int descriptor, void* to, std::size_t bytes, off_t offset) {
  return note_pread("pread", descriptor, to, bytes, offset);
}

ssize_t pread64(int descriptor, void* to, std::size_t bytes, off_t offset) {
  return note_pread("pread64", descriptor, to, bytes, offset);
}

ssize_t read(int descriptor, void* to, std::size_t bytes) {
  const bool noted = is_noted(descriptor);
  const off_t offset = noted ? lseek(descriptor, 0, SEEK_CUR) : 0;
  const ssize_t result = next<ssize_t(int, void*, std::size_t)>("read")(descriptor, to, bytes);
  if (noted) note("read", offset, result);
  return result;
}

int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  note("start", -1, 0);
  using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const[],
                    char* const[]);
  return next<Spawn>("posix_spawn")(process, path, actions, attributes, arguments, environment);
}

}  // extern "C"
