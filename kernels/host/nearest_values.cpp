#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/host/kernels.hpp"
#include "kernels/host/read_tile.hpp"

namespace rowmill::host {

namespace {

constexpr std::int64_t tile_rows = 32, window = 64;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// The best value so far of each column of a window, +inf while there is none.
struct Nearest {
  double value[window], distance[window];
};

void take(const double* line, const double* targets, std::int64_t width, Nearest& nearest) {
  for (std::int64_t j = 0; j < width; ++j) {
    const double value = line[j];
    const double distance = std::abs(value - targets[j]);
    const bool nearer = distance < nearest.distance[j];
    const bool tie = distance == nearest.distance[j] && value < nearest.value[j];
    if (std::abs(value) < infinity && (nearer || tie)) {
      nearest.value[j] = value;
      nearest.distance[j] = distance;
    }
  }
}

}  // namespace

void nearest_values(const Block& block, const double* targets, double* out) {
  double tile[tile_rows * window];
  const std::int64_t rows = row_count(block.x), columns = column_count(block.x);
  for (std::int64_t column = 0; column < columns; column += window) {
    const std::int64_t width = std::min(window, columns - column);
    Nearest nearest;
    std::fill_n(nearest.value, window, infinity);
    std::fill_n(nearest.distance, window, infinity);
    for (std::int64_t row = 0; row < rows; row += tile_rows) {
      const std::int64_t count = std::min(tile_rows, rows - row);
      read_tile(block, {row, count, column, width}, tile, window);
      for (std::int64_t i = 0; i < count; ++i) take(tile + i * window, targets + column, width, nearest);
    }
    for (std::int64_t j = 0; j < width; ++j) {
      // + 0.0: a zero without a sign
      out[column + j] = nearest.value[j] == infinity ? 0.0 : nearest.value[j] + 0.0;
    }
  }
}

}  // namespace rowmill::host
