#include "io/chunk_source.hpp"

#include <algorithm>
#include <cstring>

#include "io/contiguous_source.hpp"
#include "io/scratch.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kScratchBytes = 1 << 20;

}  // namespace

FillValue::FillValue(std::vector<std::byte> element) : element_(std::move(element)) {
  // without rows there may be no fill value; nothing is filled then
  if (element_.empty()) element_.push_back(std::byte{0});
  all_bytes_same_ = std::all_of(element_.begin(), element_.end(), [&](std::byte b) { return b == element_[0]; });
}

void FillValue::repeat(std::int64_t count, std::byte* to) const {
  const std::size_t bytes = element_.size() * static_cast<std::size_t>(count);
  if (all_bytes_same_) {
    std::memset(to, static_cast<int>(element_[0]), bytes);
    return;
  }
  std::size_t done = std::min(element_.size(), bytes);
  std::memcpy(to, element_.data(), done);
  while (done < bytes) {
    // what was copied is copied again, while it is in cache
    const std::size_t more = std::min({done, bytes - done, std::size_t{1} << 14});
    std::memcpy(to + done, to, more);
    done += more;
  }
}

void FillSource::fill(RowRange rows, std::byte* to) {
  value_.repeat(rows.count * info().columns, to);
}

ChunkSource::ChunkSource(const InputPlan& plan)
    : DenseSource(info_of(plan)),
      file_(reopen(plan)),
      value_(plan.fill),
      table_(plan.chunk_table),
      chunk_rows_(plan.chunk[0]) {
  for (std::size_t i = 1; i < plan.shape.size(); ++i) {
    if (!axes_.empty() && plan.chunk[i] == plan.shape[i]) {
      axes_.back().extent *= plan.shape[i];
      axes_.back().chunk *= plan.chunk[i];
    } else {
      axes_.push_back({plan.shape[i], plan.chunk[i], 0, 0});
    }
  }
  std::int64_t stride = 1;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    axes_[i].stride = stride;
    stride *= axes_[i].extent;
    axes_[i].cells = (axes_[i].extent - 1) / axes_[i].chunk + 1;
    cells_ *= axes_[i].cells;
    chunk_row_elements_ *= axes_[i].chunk;
  }
  whole_rows_ = axes_.empty() || (axes_.size() == 1 && axes_[0].chunk == axes_[0].extent);
}

ChunkSource::Part ChunkSource::part_of(std::int64_t cell) const {
  Part part;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const std::int64_t begin = cell % axes_[i].cells * axes_[i].chunk;
    cell /= axes_[i].cells;
    part.extent[i] = std::min(axes_[i].chunk, axes_[i].extent - begin);
    part.column += begin * axes_[i].stride;
    part.elements *= part.extent[i];
  }
  return part;
}

std::int64_t ChunkSource::address_of(std::int64_t cell) const {
  const auto found =
      std::lower_bound(table_.begin(), table_.end(), cell,
                       [](const h5::ChunkEntry& e, std::int64_t wanted) { return e.grid_index < wanted; });
  return found == table_.end() || found->grid_index != cell ? -1 : found->address;
}

template <typename F>
void ChunkSource::for_runs(const Part& part, F&& body) const {
  if (axes_.empty()) return body(0, 0, 1);
  const std::size_t last = axes_.size() - 1;
  std::array<std::int64_t, kMaxAxes> at = {};
  for (;;) {
    std::int64_t in_chunk = 0, column = part.column;
    for (std::size_t i = 0; i < last; ++i) {
      in_chunk = (in_chunk + at[i]) * axes_[i + 1].chunk;
      column += at[i] * axes_[i].stride;
    }
    body(in_chunk, column, part.extent[last]);
    std::size_t axis = last;
    while (axis > 0 && ++at[axis - 1] == part.extent[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

void ChunkSource::fill_part(const Part& part, RowRange rows, std::byte* to) const {
  if (whole_rows_) return value_.repeat(rows.count * info().columns, to);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for_runs(part, [&](std::int64_t, std::int64_t column, std::int64_t elements) {
      value_.repeat(elements, to + row * row_bytes() + column * element_bytes());
    });
  }
}

void ChunkSource::read(std::int64_t offset, std::byte* to, std::int64_t bytes, std::int64_t row) {
  file_.read(offset, {to, static_cast<std::size_t>(bytes)}, row);
  count_bytes(bytes);
}

/// address: of the first row wanted. Rows of a storage chunk lie one behind the other, each with all of the chunk's
/// columns, also those beyond the data set.
void ChunkSource::read_part(const Part& part, std::int64_t address, RowRange rows, std::byte* to) {
  const std::int64_t chunk_row_bytes = chunk_row_elements_ * element_bytes();
  if (whole_rows_) return read(address, to, rows.count * row_bytes(), rows.first);
  if (chunk_row_bytes > kScratchBytes || part.elements < chunk_row_elements_ / 8) {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      for_runs(part, [&](std::int64_t in_chunk, std::int64_t column, std::int64_t elements) {
        read(address + row * chunk_row_bytes + in_chunk * element_bytes(),
             to + row * row_bytes() + column * element_bytes(), elements * element_bytes(), rows.first + row);
      });
    }
    return;
  }
  const Scratch scratch(scratch_, kScratchBytes);
  const std::int64_t at_once = kScratchBytes / chunk_row_bytes;
  for (std::int64_t first = 0; first < rows.count; first += at_once) {
    const std::int64_t count = std::min(at_once, rows.count - first);
    read(address + first * chunk_row_bytes, scratch.data(), count * chunk_row_bytes, rows.first + first);
    for (std::int64_t row = 0; row < count; ++row) {
      const std::byte* from = scratch.data() + row * chunk_row_bytes;
      std::byte* place = to + (first + row) * row_bytes();
      for_runs(part, [&](std::int64_t in_chunk, std::int64_t column, std::int64_t elements) {
        std::memcpy(place + column * element_bytes(), from + in_chunk * element_bytes(),
                    static_cast<std::size_t>(elements * element_bytes()));
      });
    }
  }
}

void ChunkSource::fill(RowRange rows, std::byte* to) {
  for (std::int64_t band = rows.first / chunk_rows_; band * chunk_rows_ < rows.end(); ++band) {
    const std::int64_t first = std::max(rows.first, band * chunk_rows_);
    const RowRange wanted{first, std::min(rows.end(), (band + 1) * chunk_rows_) - first};
    std::byte* place = to + (first - rows.first) * row_bytes();
    for (std::int64_t cell = 0; cell < cells_; ++cell) {
      const Part part = part_of(cell);
      const std::int64_t address = address_of(band * cells_ + cell);
      if (address < 0) {
        fill_part(part, wanted, place);
      } else {
        const std::int64_t rows_before = first - band * chunk_rows_;
        read_part(part, address + rows_before * chunk_row_elements_ * element_bytes(), wanted, place);
      }
    }
  }
}

}  // namespace rowmill
