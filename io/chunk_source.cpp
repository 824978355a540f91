#include "io/chunk_source.hpp"

#include <algorithm>

#include "io/contiguous_source.hpp"
#include "io/scratch.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kScratchBytes = 1 << 20;

}  // namespace

ChunkSource::ChunkSource(const InputPlan& plan)
    : DenseSource(info_of(plan)), file_(reopen(plan)), grid_(plan), value_(plan.fill), table_(plan.chunk_table) {}

std::int64_t ChunkSource::address_of(std::int64_t index) const {
  const auto found =
      std::lower_bound(table_.begin(), table_.end(), index,
                       [](const h5::ChunkEntry& e, std::int64_t wanted) { return e.grid_index < wanted; });
  return found == table_.end() || found->grid_index != index ? -1 : found->address;
}

void ChunkSource::read_bytes(std::int64_t offset, std::byte* to, std::int64_t bytes, std::int64_t row) {
  file_.read(offset, {to, static_cast<std::size_t>(bytes)}, row);
  count_bytes(bytes);
}

/// Only what lies within the data set is read.
void ChunkSource::read_runs(std::int64_t cell, std::int64_t address, RowRange rows, std::byte* to) {
  const std::int64_t chunk_row_bytes = grid_.chunk_row_elements() * element_bytes();
  for (std::int64_t row = 0; row < rows.count; ++row) {
    grid_.for_runs(cell, [&](std::int64_t in_chunk, std::int64_t column, std::int64_t elements) {
      read_bytes(address + row * chunk_row_bytes + in_chunk * element_bytes(),
                 to + row * row_bytes() + column * element_bytes(), elements * element_bytes(), rows.first + row);
    });
  }
}

/// address: of the first row wanted. Rows of a storage chunk lie one behind the other, each with all of the chunk's
/// columns, also those beyond the data set.
void ChunkSource::read_part(std::int64_t cell, std::int64_t address, RowRange rows, std::byte* to) {
  const std::int64_t chunk_row_bytes = grid_.chunk_row_elements() * element_bytes();
  if (grid_.whole_rows()) return read_bytes(address, to, rows.count * row_bytes(), rows.first);
  if (chunk_row_bytes > kScratchBytes || grid_.row_elements(cell) < grid_.chunk_row_elements() / 8) {
    return read_runs(cell, address, rows, to);
  }
  const Scratch scratch(scratch_, kScratchBytes);
  const std::int64_t at_once = kScratchBytes / chunk_row_bytes;
  for (std::int64_t first = 0; first < rows.count; first += at_once) {
    const std::int64_t count = std::min(at_once, rows.count - first);
    read_bytes(address + first * chunk_row_bytes, scratch.data(), count * chunk_row_bytes, rows.first + first);
    grid_.copy(cell, {0, count}, scratch.data(), to + first * row_bytes());
  }
}

void ChunkSource::fill(RowRange rows, std::byte* to) {
  for (std::int64_t band = rows.first / grid_.band_rows(); band * grid_.band_rows() < rows.end(); ++band) {
    const RowRange all = grid_.rows_of(band);
    const std::int64_t first = std::max(rows.first, all.first);
    const RowRange wanted{first, std::min(rows.end(), all.end()) - first};
    std::byte* place = to + (first - rows.first) * row_bytes();
    for (std::int64_t cell = 0; cell < grid_.cells(); ++cell) {
      const std::int64_t address = address_of(grid_.index_of(band, cell));
      if (address < 0) {
        grid_.fill(cell, wanted.count, value_, place);
      } else {
        const std::int64_t rows_before = first - all.first;
        read_part(cell, address + rows_before * grid_.chunk_row_elements() * element_bytes(), wanted, place);
      }
    }
  }
}

}  // namespace rowmill
