#include "io/decoded_source.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/units.hpp"
#include "io/layout_cost.hpp"
#include "io/scratch.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kDecodedAtOnce = 1 << 18;
/// Bands that blocks share where nobody has said how rows will be asked for.
constexpr std::int64_t kBandsUnprepared = 3;
/// Decoding every storage chunk more often than this is refused.
constexpr std::int64_t kMostRepeats = 4;

FilterChain chain_of(const InputPlan& plan) {
  try {
    return FilterChain(plan.filters);
  } catch (const FilterError& e) {
    throw Error(ExitCode::input, plan.name() + ": " + e.what());
  }
}

}  // namespace

/// What one thread decodes with.
struct DecodedSource::Workspace {
  explicit Workspace(MemoryPool& pool) : filters(pool) {}
  FilterScratch filters;
  std::unique_ptr<Scratch> chunk;  ///< a whole storage chunk
};

/// A workspace for as long as a read takes.
class DecodedSource::Borrowed {
 public:
  explicit Borrowed(DecodedSource& owner) : owner_(owner) {
    const std::scoped_lock lock(owner_.spaces_mutex_);
    if (owner_.spaces_.empty()) {
      space_ = std::make_unique<Workspace>(owner_.scratch_);
    } else {
      space_ = std::move(owner_.spaces_.back());
      owner_.spaces_.pop_back();
    }
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    const std::scoped_lock lock(owner_.spaces_mutex_);
    owner_.spaces_.push_back(std::move(space_));
  }
  Workspace& operator*() const { return *space_; }

 private:
  DecodedSource& owner_;
  std::unique_ptr<Workspace> space_;
};

DecodedSource::DecodedSource(const InputPlan& plan, std::unique_ptr<StoredChunks> stored, std::int64_t memory_bytes)
    : DenseSource(info_of(plan)),
      grid_(plan),
      value_(plan.fill),
      chain_(chain_of(plan)),
      filtered_(!plan.filters.empty()),
      edges_unfiltered_(plan.edges_unfiltered),
      stored_(std::move(stored)),
      store_({grid_.cells(), std::max<std::int64_t>(1, kDecodedAtOnce / grid_.chunk_bytes())},
             [this](std::int64_t band, std::int64_t first, std::int64_t end, std::int64_t place) {
               keep(band, first, end, place);
             }),
      keeper_(keep_in_memory(grid_)) {
  const std::int64_t chunk = grid_.chunk_bytes();
  const auto filters = filtered_ ? static_cast<std::int64_t>(chain_.scratch_bytes(static_cast<std::size_t>(chunk))) : 0;
  needs_memory_a_reader(stored_->reader_bytes() + chunk + filters);
  if (plan.way == Way::fetched) is_read_elsewhere();
  set_layout_cost(band_cost(info()));
  const std::int64_t bands = (info().rows - 1) / grid_.band_rows() + 1;
  store_.allow(std::min(kBandsUnprepared, memory_bytes / grid_.band_bytes()), bands);
}

DecodedSource::~DecodedSource() = default;

void DecodedSource::prepare(const ReadingPlan& plan) {
  const std::int64_t band_rows = grid_.band_rows(), block_rows = plan.grid.block_rows();
  if (plan.rows.count == 0) return;
  const std::int64_t first = plan.rows.first / band_rows, last = (plan.rows.end() - 1) / band_rows;
  const RowRange milled = plan.grid.rows();
  const bool one_block = (plan.rows_before + milled.first) / block_rows ==
                         (plan.rows_before + std::max(milled.first, milled.end() - 1)) / block_rows;
  if ((block_rows % band_rows == 0 && plan.rows_before % band_rows == 0) || one_block) {
    store_.allow(0, 0);  // a band lies in one block: it is decoded straight to its place
    return;
  }
  // bands that blocks in hand may need at a time, and one that is begun early
  const std::int64_t wanted = std::min(last - first + 1, plan.readers * block_rows / band_rows + 2);
  const std::int64_t bands = std::min(wanted, plan.memory_bytes / grid_.band_bytes());
  store_.allow(bands, last + 1);
  needs_shared_memory(bands * grid_.band_bytes());
  if (bands > 0) return;
  if (plan.scratch.empty()) return give_up_or_warn(block_rows);
  keeper_ = keep_in_scratch(grid_, plan.scratch);
  store_.allow(wanted, last + 1);
  needs_memory_a_reader(info().reader_bytes + grid_.chunk_bytes());
}

void DecodedSource::give_up_or_warn(std::int64_t block_rows) {
  const std::int64_t repeats = (std::min(grid_.band_rows(), info().rows) - 1) / block_rows + 2;
  const std::string cost = info().name() + ": a row lies in storage chunks of " + std::to_string(grid_.band_rows()) +
                           " rows, which are decoded for each block of " + std::to_string(block_rows) +
                           " rows again (up to " + std::to_string(repeats) + " times), since the " +
                           format_size(grid_.band_bytes()) + " of rows that they hold do not fit in memory: " +
                           "give more --memory, or a --scratch folder, or rechunk: " + rechunk_command(info());
  if (repeats > kMostRepeats) throw Error(ExitCode::input, cost);
  warn(cost);
}

void DecodedSource::unfilter(Workspace& space, const StoredChunk& stored, std::span<std::byte> to) const {
  if (filtered_) return chain_.decode(stored.bytes, stored.mask, to, space.filters);
  std::memcpy(to.data(), stored.bytes.data(), to.size());
}

/// Masks do not tell of storage chunks that were not filtered since they reach beyond the data set.
StoredChunk DecodedSource::with_edges(StoredChunk stored, std::int64_t band, std::int64_t cell) const {
  if (edges_unfiltered_ && grid_.is_partial(band, cell)) stored.mask = ~0U;
  return stored;
}

const std::byte* DecodedSource::whole_chunk(Workspace& space, const StoredChunk& stored) {
  if (!filtered_ && !stored.bytes.empty()) return stored.bytes.data();
  const auto bytes = static_cast<std::size_t>(grid_.chunk_bytes());
  if (space.chunk == nullptr) space.chunk = std::make_unique<Scratch>(scratch_, bytes);
  if (stored.bytes.empty()) {
    value_.repeat(grid_.chunk_bytes() / element_bytes(), space.chunk->data());
  } else {
    unfilter(space, stored, {space.chunk->data(), bytes});
  }
  return space.chunk->data();
}

/// rows: those wanted of all bands; to: the first of them.
void DecodedSource::decode_one(Workspace& space, const Piece& piece, RowRange rows, std::byte* to) {
  const RowRange all = grid_.rows_of(piece.band);
  const std::int64_t first = std::max(all.first, rows.first);
  const RowRange wanted{first - all.first, std::min(all.end(), rows.end()) - first};
  to += (first - rows.first) * row_bytes();
  if (piece.stored.bytes.empty()) return grid_.fill(piece.cell, wanted.count, value_, to);
  if (grid_.whole_rows() && wanted.count == grid_.band_rows()) {
    return unfilter(space, piece.stored, {to, static_cast<std::size_t>(grid_.chunk_bytes())});
  }
  grid_.copy(piece.cell, wanted, whole_chunk(space, piece.stored), to);
}

template <typename F>
void DecodedSource::for_each(Cells cells, RowRange rows, F&& body) {
  constexpr std::int64_t kAtOnce = 4096;
  const Borrowed space(*this);
  std::vector<std::int64_t> indices;
  for (std::int64_t first = cells.first; first < cells.end; first += kAtOnce) {
    const std::int64_t end = std::min(cells.end, first + kAtOnce);
    indices.clear();
    for (std::int64_t i = first; i < end; ++i) indices.push_back(grid_.index_of(i / grid_.cells(), i % grid_.cells()));
    const std::int64_t first_row = std::max(rows.first, first / grid_.cells() * grid_.band_rows());
    const RowRange asked{first_row, std::min(rows.end(), grid_.rows_of((end - 1) / grid_.cells()).end()) - first_row};
    count_bytes(stored_->read(indices, asked, [&](std::size_t position, const StoredChunk& stored) {
      const std::int64_t i = first + static_cast<std::int64_t>(position);
      const std::int64_t band = i / grid_.cells(), cell = i % grid_.cells();
      try {
        body(*space, Piece{band, cell, with_edges(stored, band, cell)});
      } catch (const FilterError& e) {
        const RowRange damaged = grid_.rows_of(band);
        throw Error(ExitCode::input, info().name() + ": storage chunk " + grid_.coordinates(indices[position]) +
                                         " (rows " + std::to_string(damaged.first) + " to " +
                                         std::to_string(damaged.end() - 1) + "): " + e.what() + ": get the file again");
      }
    }));
  }
}

void DecodedSource::decode(Cells cells, RowRange rows, std::byte* to) {
  for_each(cells, rows, [&](Workspace& space, const Piece& piece) { decode_one(space, piece, rows, to); });
}

void DecodedSource::keep(std::int64_t band, std::int64_t first_cell, std::int64_t end_cell, std::int64_t place) {
  const Cells cells{band * grid_.cells() + first_cell, band * grid_.cells() + end_cell};
  const RowRange rows = grid_.rows_of(band);
  if (std::byte* to = keeper_->rows_at(place)) return decode(cells, rows, to);
  for_each(cells, rows, [&](Workspace& space, const Piece& piece) {
    keeper_->put(place, piece.cell, rows.count, whole_chunk(space, piece.stored));
  });
}

void DecodedSource::fill(RowRange rows, std::byte* to) {
  const std::int64_t band_rows = grid_.band_rows(), cells = grid_.cells();
  for (std::int64_t row = rows.first; row < rows.end();) {
    const std::int64_t band = row / band_rows;
    const RowRange all = grid_.rows_of(band);
    std::byte* place = to + (row - rows.first) * row_bytes();
    const bool whole = row == all.first && all.end() <= rows.end();
    if (!whole && store_.bands_allowed() > 0) {
      const std::int64_t count = std::min(all.end(), rows.end()) - row;
      store_.use(band, all.count, count, [&](std::int64_t kept) {
        keeper_->take(kept, {row - all.first, count}, place);
      });
      row += count;
      continue;
    }
    // whole bands in one go; those at both ends too where nothing is kept
    std::int64_t end_band = std::max(band + 1, rows.end() / band_rows);
    if (store_.bands_allowed() == 0 || rows.end() == info().rows) end_band = (rows.end() - 1) / band_rows + 1;
    const std::int64_t end = std::min(end_band * band_rows, rows.end());
    decode({band * cells, end_band * cells}, {row, end - row}, place);
    row = end;
  }
}

}  // namespace rowmill
