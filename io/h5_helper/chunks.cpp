#include "io/h5_helper/chunks.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "io/h5_helper/filters.hpp"

namespace rowmill::h5 {

namespace {

/// What is wanted of a walk over all storage chunks.
struct Walk {
  const ChunkLayout& layout;
  std::vector<ChunkEntry>& entries;

  void take(const hsize_t* first, unsigned mask, haddr_t address, hsize_t bytes) {
    const std::int64_t index = layout.index_of(first);
    // storage chunks beyond the shape may be left from before it shrank
    if (index < 0 || address == HADDR_UNDEF) return;
    entries.push_back({index, static_cast<std::int64_t>(address), static_cast<std::int64_t>(bytes), mask});
  }
};

#ifdef ROWMILL_HAVE_CHUNK_ITER
/// The types of mask and size differ among releases: 1.14.0 has uint32_t for a size, later ones hsize_t.
template <typename Mask, typename Size>
int take_chunk(const hsize_t* first, Mask mask, haddr_t address, Size bytes, void* to) {
  static_cast<Walk*>(to)->take(first, mask, address, bytes);
  return 0;
}

bool walk_chunks(const OpenedDataset& dataset, hsize_t stored, Walk walk) {
  if (stored > static_cast<hsize_t>(kMaxIteratedChunks)) return false;
  must(H5Dchunk_iter(dataset.id(), H5P_DEFAULT, take_chunk, &walk), "storage chunks");
  // releases may differ in what the walk counts a storage chunk's place in: the look-up of the last one must agree
  const Id space(H5Dget_space(dataset.id()), H5Sclose, "shape");
  std::vector<hsize_t> first(walk.layout.extents().size());
  std::vector<ChunkEntry> last;
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  must(H5Dget_chunk_info(dataset.id(), space, stored - 1, first.data(), &mask, &address, &bytes), "storage chunks");
  Walk{walk.layout, last}.take(first.data(), mask, address, bytes);
  return last.empty() || std::any_of(walk.entries.begin(), walk.entries.end(), [&](const ChunkEntry& entry) {
           return entry.grid_index == last[0].grid_index && entry.address == last[0].address;
         });
}
#else
bool walk_chunks(const OpenedDataset& dataset, hsize_t stored, Walk walk) {
  if (stored > static_cast<hsize_t>(kMaxListedChunks)) return false;
  const Id space(H5Dget_space(dataset.id()), H5Sclose, "shape");
  std::vector<hsize_t> first(walk.layout.extents().size());
  for (hsize_t i = 0; i < stored; ++i) {
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    must(H5Dget_chunk_info(dataset.id(), space, i, first.data(), &mask, &address, &bytes), "storage chunks");
    walk.take(first.data(), mask, address, bytes);
  }
  return true;
}
#endif

hsize_t user_block_of(hid_t file) {
  const Id creation(H5Fget_create_plist(file), H5Pclose, "file");
  hsize_t bytes = 0;
  must(H5Pget_userblock(creation, &bytes), "user block");
  return bytes;
}

bool lies_at(int descriptor, std::int64_t address, std::span<const std::byte> bytes) {
  std::vector<std::byte> there(bytes.size());
  return ::pread(descriptor, there.data(), there.size(), static_cast<off_t>(address)) ==
             static_cast<ssize_t>(there.size()) &&
         std::equal(there.begin(), there.end(), bytes.begin());
}

/// Releases of HDF5 differ in whether addresses of storage chunks count the user block. Which one this is shows where
/// the bytes of a storage chunk are found. Empty where that is not clear.
std::optional<std::int64_t> what_addresses_lack(hid_t file, const OpenedDataset& dataset, const ChunkLayout& layout,
                                                const std::vector<ChunkEntry>& entries) {
  const auto user_block = static_cast<std::int64_t>(user_block_of(file));
  if (user_block == 0) return 0;
  void* handle = nullptr;
  must(H5Fget_vfd_handle(file, H5P_DEFAULT, &handle), "file descriptor");
  const int descriptor = *static_cast<int*>(handle);
  constexpr std::size_t kTries = 8;
  constexpr std::int64_t kMost = 16 << 20;
  for (std::size_t i = 0; i < std::min(kTries, entries.size()); ++i) {
    const ChunkEntry& entry = entries[i];
    if (entry.bytes < 1 || entry.bytes > kMost) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
    std::uint32_t mask = 0;
    const std::vector<hsize_t> first = layout.first_of(entry.grid_index);
    must(H5Dread_chunk(dataset.id(), H5P_DEFAULT, first.data(), &mask, bytes.data()), "a storage chunk");
    const bool counted = lies_at(descriptor, entry.address, bytes);
    const bool lacking = lies_at(descriptor, entry.address + user_block, bytes);
    if (counted != lacking) return counted ? 0 : user_block;
  }
  return {};
}

/// Stored bytes; 0 of a storage chunk that was never written.
hsize_t stored_bytes(const OpenedDataset& dataset, const hsize_t* first) {
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset.id(), first, &bytes) >= 0) return bytes;
  // 1.10 calls that an error, and has no number for it
  const std::string why = error_text();
  if (why.find("not allocated") == std::string::npos) throw Refusal("a storage chunk: " + why);
  return 0;
}

/// Bytes of one storage chunk put at `at`; false where there is no room.
bool fetch_chunk(const OpenedDataset& dataset, const ChunkLayout& layout, ChunkEntry& entry, std::int64_t at,
                 std::span<std::byte> to) {
  const std::vector<hsize_t> first = layout.first_of(entry.grid_index);
  const hsize_t bytes = stored_bytes(dataset, first.data());
  entry.address = -1;
  if (bytes == 0) return true;
  if (bytes > to.size() - static_cast<std::size_t>(at)) return false;
  entry.address = at;
  entry.bytes = static_cast<std::int64_t>(bytes);
  must(H5Dread_chunk(dataset.id(), H5P_DEFAULT, first.data(), &entry.mask, to.data() + at), "a storage chunk");
  return true;
}

}  // namespace

ChunkLayout::ChunkLayout(const OpenedDataset& dataset) : shape_(dataset.shape()), chunk_(shape_) {
  // a value of a table's column lies whole in one storage chunk
  const int axes = dataset.is_member() ? 1 : static_cast<int>(chunk_.size());
  must(H5Pget_chunk(dataset.creation(), axes, chunk_.data()), "storage chunks");
  std::int64_t cells = 1;
  bool overflow = false;
  for (std::size_t axis = 0; axis < chunk_.size(); ++axis) {
    if (chunk_[axis] == 0) throw Refusal("its storage chunks are empty: the file is damaged");
    grid_.push_back(shape_[axis] / chunk_[axis] + (shape_[axis] % chunk_[axis] != 0 ? 1 : 0));
    overflow = overflow || __builtin_mul_overflow(cells, grid_[axis], &cells);
  }
  if (!overflow) cells_ = cells;
}

std::int64_t ChunkLayout::index_of(const hsize_t* first) const {
  std::int64_t index = 0;
  for (std::size_t axis = 0; axis < chunk_.size(); ++axis) {
    if (first[axis] >= shape_[axis]) return -1;
    index = index * static_cast<std::int64_t>(grid_[axis]) + static_cast<std::int64_t>(first[axis] / chunk_[axis]);
  }
  return index;
}

std::vector<hsize_t> ChunkLayout::first_of(std::int64_t index) const {
  if (index < 0 || index >= cells_) throw Refusal("a storage chunk outside of the data set was asked for");
  std::vector<hsize_t> first(chunk_.size());
  for (std::size_t axis = chunk_.size(); axis-- > 0;) {
    first[axis] = static_cast<hsize_t>(index) % grid_[axis] * chunk_[axis];
    index /= static_cast<std::int64_t>(grid_[axis]);
  }
  return first;
}

bool is_decoded_here(const OpenedDataset& dataset) {
  if (dataset.layout() != H5D_CHUNKED || dataset.element().convert || dataset.is_member()) return false;
  const std::vector<Filter> filters = filters_of(dataset.creation());
  return std::all_of(filters.begin(), filters.end(),
                     [](const Filter& filter) { return why_not_decoded(filter.step).empty(); });
}

bool list_chunks(hid_t file, const OpenedDataset& dataset, const ChunkLayout& layout, hsize_t stored,
                 std::vector<ChunkEntry>& entries) {
  if (!walk_chunks(dataset, stored, {layout, entries})) {
    entries.clear();
    return false;
  }
  std::sort(entries.begin(), entries.end(),
            [](const ChunkEntry& a, const ChunkEntry& b) { return a.grid_index < b.grid_index; });
  const auto lacking = what_addresses_lack(file, dataset, layout, entries);
  if (!lacking) {
    entries.clear();
    return false;
  }
  for (ChunkEntry& entry : entries) entry.address += *lacking;
  return true;
}

std::vector<ChunkEntry> fetch_chunks(const OpenedDataset& dataset, const std::vector<std::int64_t>& wanted,
                                     std::span<std::byte> to) {
  const ChunkLayout layout(dataset);
  std::vector<ChunkEntry> entries;
  std::int64_t at = 0;
  for (const std::int64_t index : wanted) {
    ChunkEntry entry{index};
    if (!fetch_chunk(dataset, layout, entry, at, to)) break;
    entries.push_back(entry);
    at += (entry.bytes + 7) / 8 * 8;  // entry.bytes is 0 for one that was never written
    if (at > static_cast<std::int64_t>(to.size())) break;
  }
  if (entries.empty()) throw Refusal("a storage chunk is far longer than its values: the file is damaged");
  return entries;
}

}  // namespace rowmill::h5
