#pragma once
// A regular file, opened read-only without locks, read at given places.
#include <cstdint>
#include <span>
#include <string>

namespace rowmill {

/// Thread safe. Reads do not share a file position and do not map the file (a mapped file that is cut short meanwhile
/// would end the program by a signal).
class ReadFile {
 public:
  /// Throws Error(input) naming what is wrong: not there, a folder, not a regular file, not readable.
  explicit ReadFile(const std::string& path) : ReadFile(path, path) {}

  /// `name`: what messages begin with, file and data set where the data set is known.
  ReadFile(const std::string& path, const std::string& name);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&&) = delete;
  ~ReadFile();

  const std::string& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t modified_ns() const { return modified_ns_; }

  /// Throws Error(input) if the file is no longer as it was: then what was read of it may be of two states.
  static void check_unchanged(const std::string& path, const std::string& name, std::int64_t bytes,
                              std::int64_t modified_ns);

  /// Fills `to` from byte `offset` on, in pieces that stay in the processor's cache. Returns how many bytes there were
  /// before the end of the file. Throws Error(input) if the system cannot read.
  std::int64_t read_some(std::int64_t offset, std::span<std::byte> to) const;

  /// As read_some, but throws Error(input) saying that the file is truncated, with `row`, if it ends before.
  void read(std::int64_t offset, std::span<std::byte> to, std::int64_t row) const;

 private:
  std::string path_, name_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0, modified_ns_ = 0;
};

}  // namespace rowmill
