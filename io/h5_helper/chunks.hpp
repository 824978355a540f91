#pragma once
// Storage chunks: where they lie, and their bytes as they are stored.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/h5_helper/opened.hpp"
#include "io/h5_helper/protocol.hpp"

namespace rowmill::h5 {

/// The grid of storage chunks of a data set that has them.
class ChunkLayout {
 public:
  /// Throws Refusal if HDF5 gives extents that cannot be.
  explicit ChunkLayout(const OpenedDataset& dataset);

  const std::vector<hsize_t>& extents() const { return chunk_; }
  /// False where the number of storage chunks that could be is beyond 63 bits.
  bool can_be_numbered() const { return cells_ >= 0; }
  /// Place in the grid, row-major, of the storage chunk that begins at an element; -1 outside of the data set.
  std::int64_t index_of(const hsize_t* first) const;
  /// Throws Refusal for a place that is not of the grid.
  std::vector<hsize_t> first_of(std::int64_t index) const;

 private:
  std::vector<hsize_t> shape_, chunk_, grid_;
  std::int64_t cells_ = -1;
};

/// True if the program can undo the filters and needs no conversion by HDF5.
bool is_decoded_here(const OpenedDataset& dataset);

/// The `stored` storage chunks that are in the file, ascending by grid index, with addresses that count from its first
/// byte. False where they are too many to list, or where it is not clear what their addresses count from.
bool list_chunks(hid_t file, const OpenedDataset& dataset, const ChunkLayout& layout, hsize_t stored,
                 std::vector<ChunkEntry>& entries);

/// Stored bytes of as many of the wanted storage chunks as there is room for, in order; at least one. Throws Refusal.
std::vector<ChunkEntry> fetch_chunks(const OpenedDataset& dataset, const std::vector<std::int64_t>& wanted,
                                     std::span<std::byte> to);

}  // namespace rowmill::h5
