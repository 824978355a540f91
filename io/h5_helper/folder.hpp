#pragma once
// What a file may pull in besides itself: only regular files that lie in its own folder or below (symbolic links are
// followed first). The helper's working directory is that folder.
#include <cstdint>
#include <optional>
#include <string>

namespace rowmill::h5 {

struct Companion {
  std::string path;
  std::int64_t bytes = 0;
};

/// Looks a name up in HDF5's order (as it stands, then its last part beside the file). Empty if there is none. Throws
/// Refusal if it lies outside the folder or is not a regular file.
std::optional<Companion> find_companion(const std::string& name);

}  // namespace rowmill::h5
