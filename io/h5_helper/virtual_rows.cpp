#include "io/h5_helper/virtual_rows.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "io/h5_helper/companions.hpp"
#include "io/h5_helper/protocol.hpp"

namespace rowmill::h5 {

namespace {

constexpr std::size_t kMostFiles = 64;

}  // namespace

VirtualRows::VirtualRows(hid_t creation, int row_axis) {
  std::size_t count = 0;
  must(H5Pget_virtual_count(creation, &count), "virtual sources");
  std::map<std::string, std::size_t> files;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t file = files.emplace(virtual_file(creation, i), files.size()).first->second;
    const Id space(H5Pget_virtual_vspace(creation, i), H5Sclose, "virtual source");
    std::vector<hsize_t> start(H5S_MAX_RANK), end(H5S_MAX_RANK);
    Mapping mapping{0, std::numeric_limits<std::int64_t>::max(), file};
    if (H5Sget_select_bounds(space, start.data(), end.data()) >= 0) {
      mapping.first = static_cast<std::int64_t>(start[static_cast<std::size_t>(row_axis)]);
      mapping.last = static_cast<std::int64_t>(end[static_cast<std::size_t>(row_axis)]);
    } else {
      H5Eclear2(H5E_DEFAULT);  // it grows without bound: it may hold any row
    }
    mappings_.push_back(mapping);
  }
  std::sort(mappings_.begin(), mappings_.end(), [](const Mapping& a, const Mapping& b) { return a.first < b.first; });
  many_ = files.size() > kMostFiles;
}

std::int64_t VirtualRows::at_once(std::int64_t first, std::int64_t count) const {
  if (!many_) return count;
  std::set<std::size_t> files;
  for (const Mapping& mapping : mappings_) {
    if (mapping.first >= first + count) break;
    if (mapping.last < first) continue;
    files.insert(mapping.file);
    if (files.size() > kMostFiles && mapping.first > first) return mapping.first - first;
  }
  return count;
}

void check_descriptors() {
  const int free = ::fcntl(kSocket, F_DUPFD_CLOEXEC, 0);
  if (free < 0) {
    throw Refusal("rows of it come from more files than may be open at a time: raise the limit (ulimit -n)");
  }
  ::close(free);
}

}  // namespace rowmill::h5
