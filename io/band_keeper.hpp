#pragma once
// Where decoded bands of storage chunks are kept: in memory, or in a scratch file.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/pool.hpp"
#include "io/chunk_grid.hpp"

namespace rowmill {

/// Holds bands at places 0, 1, …. Thread safe, as long as nobody takes what is being put.
class BandKeeper {
 public:
  virtual ~BandKeeper() = default;

  /// Where rows of a band are decoded to, as they are delivered; null where put() wants storage chunks one by one.
  virtual std::byte* rows_at(std::int64_t place) = 0;
  /// Keeps the `rows` rows of a whole storage chunk. Throws Error(failed).
  virtual void put(std::int64_t place, std::int64_t cell, std::int64_t rows, const std::byte* chunk) = 0;
  /// Copies rows, counted from the band's first one, to `to`. Throws Error(failed).
  virtual void take(std::int64_t place, RowRange rows, std::byte* to) = 0;
};

std::unique_ptr<BandKeeper> keep_in_memory(const ChunkGrid& grid);

/// In a file of this folder that nobody sees and that is gone with the keeper, however the program ends. Throws
/// Error(usage) naming the folder if there can be none.
std::unique_ptr<BandKeeper> keep_in_scratch(const ChunkGrid& grid, const std::string& folder);

}  // namespace rowmill
