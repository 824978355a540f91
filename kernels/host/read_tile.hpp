#pragma once
// Any part of any block as doubles: the way of every type, byte order, mask and sparse row that has no faster one.
#include <cstdint>

#include "core/block.hpp"

namespace rowmill::host {

/// A rectangle of a block: rows counted from the block's first.
struct Tile {
  std::int64_t first_row = 0, rows = 0, first_column = 0, columns = 0;
};

/// Writes the tile row-major to `to`, `stride` doubles a row: each value rounded to the nearest double, missing ones as
/// NaN, entries that a sparse row does not hold as 0.
void read_tile(const Block& block, const Tile& tile, double* to, std::int64_t stride);

}  // namespace rowmill::host
