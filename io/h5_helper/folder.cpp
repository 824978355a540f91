#include "io/h5_helper/folder.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <memory>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

namespace {

std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (!real) return {};
  return std::string(real.get());
}

bool is_below(const std::string& path, const std::string& folder) {
  if (folder == "/") return true;
  return path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

std::optional<Companion> find_companion(const std::string& name) {
  std::optional<std::string> real = real_path(name);
  if (!real && name.starts_with('/')) real = real_path(name.substr(name.rfind('/') + 1));
  if (!real) return {};
  const std::optional<std::string> folder = real_path(".");
  if (!folder || !is_below(*real, *folder)) {
    throw Refusal("it pulls in \"" + name + "\", which lies outside the file's own folder: copy it there");
  }
  struct stat status = {};
  if (::stat(real->c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Refusal("it pulls in \"" + name + "\", which is not a regular file");
  }
  return Companion{*real, status.st_size};
}

}  // namespace rowmill::h5
