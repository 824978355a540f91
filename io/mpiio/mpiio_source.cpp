#include "io/mpiio/mpiio_source.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "io/contiguous_source.hpp"
#include "io/rank_meeting.hpp"
#include "io/scratch.hpp"

namespace rowmill {

namespace {

/// Of one call of MPI-IO, whose counts are ints.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
/// Rows that must be put in order go through scratch memory, so much at a time.
constexpr std::int64_t kPieceBytes = 8 << 20;
constexpr std::int64_t kMaxBandBytes = 64 << 20;
constexpr std::int64_t kLeastCache = 1 << 20;

[[noreturn]] void refuse(const InputPlan& plan, const std::string& why) {
  throw Error(ExitCode::input, plan.name() + ": cannot be read by MPI-IO: " + why);
}

SourceInfo info_for(const InputPlan& plan, const MpiThread& thread) {
  SourceInfo info = info_of(plan);
  info.way = std::string("read by HDF5 and MPI-IO, ") +
             (thread.mode() == MpiThread::Mode::collective ? "all ranks together" : "each rank on its own");
  return info;
}

/// Blocks may be lower than a band of storage chunks: what is decoded is kept for the next of them.
std::int64_t cache_for(const SourceInfo& info, std::int64_t row_bytes, std::int64_t memory_limit) {
  const std::int64_t rows = std::min(info.storage_chunk_rows, std::max<std::int64_t>(info.rows, 1));
  std::int64_t band = 0;
  if (__builtin_mul_overflow(rows, row_bytes, &band) || band > memory_limit / 3) return kLeastCache;
  return std::max(kLeastCache, band + band / 4);
}

}  // namespace

void check_for_mpiio(const InputPlan& plan, const MpiThread& thread) {
  if (plan.format == "npy") refuse(plan, "it is a .npy file, which HDF5 does not read; use --io direct");
  if (thread.mode() == MpiThread::Mode::independent) return;
  if (plan.way == Way::rows) refuse(plan, "files that are joined are not read by all ranks at once; use --io mpiio");
  if (!plan.parts.empty())
    refuse(plan, "it is made of several data sets, which are not read by all ranks at once; use --io mpiio");
}

MpiioSource::MpiioSource(const InputPlan& plan, MpiThread& thread, std::int64_t memory_limit)
    : DenseSource(info_for(plan, thread)),
      thread_(thread),
      layout_(plan.shape, plan.row_axis, false, static_cast<std::int64_t>(size_of(plan.type))) {
  const bool in_order = layout_.rows_in_order();
  const std::int64_t chunk_rows = std::clamp<std::int64_t>(info().storage_chunk_rows, 1, info().rows);
  const auto rows_of = [this](std::int64_t bytes) { return std::max<std::int64_t>(1, bytes / row_bytes()); };
  piece_rows_ = rows_of(in_order ? kMostBytes : kPieceBytes);
  if (!in_order && chunk_rows <= rows_of(kMaxBandBytes))
    piece_rows_ = chunk_rows * std::max<std::int64_t>(1, piece_rows_ / chunk_rows);
  const std::int64_t cache_bytes = plan.chunk.empty() ? kLeastCache : cache_for(info(), row_bytes(), memory_limit);
  needs_shared_memory(cache_bytes);
  if (!in_order) needs_memory_a_reader(std::min(piece_rows_, info().rows) * row_bytes());
  is_read_elsewhere();
  thread_.run([&] { open(plan, cache_bytes); });
}

MpiioSource::~MpiioSource() {
  thread_.destroy_later(std::move(dataset_));
}

void MpiioSource::open(const InputPlan& plan, std::int64_t cache_bytes) {
  const bool several = mpi_world_size() > 1;
  if (several && thread_.mode() == MpiThread::Mode::collective) return open_together(plan, cache_bytes);
  reopen(plan);
  dataset_ = std::make_shared<MpiioDataset>(plan, MpiioDataset::Opening{false, cache_bytes});
}

/// Nobody comes to the collective opening of a file that one rank does not have, or that was changed.
void MpiioSource::open_together(const InputPlan& plan, std::int64_t cache_bytes) {
  RankMeeting meeting(false, thread_.while_waiting());
  const auto together = [&meeting](const auto& body) {
    std::optional<Error> error;
    try {
      body();
    } catch (const Error& caught) {
      error = caught;
    }
    meeting.throw_if_any(error);
  };
  together([&] { reopen(plan); });
  together([&] {
    const auto guarded = thread_.guard();
    dataset_ = std::make_shared<MpiioDataset>(plan, MpiioDataset::Opening{true, cache_bytes});
  });
  thread_.read_in_rounds([dataset = dataset_] { dataset->take_part(); });
}

void MpiioSource::read_piece(RowRange rows, std::byte* to) {
  thread_.read([&](bool in_round) { dataset_->read(rows, to, in_round); });
  count_bytes(rows.count * row_bytes());
}

void MpiioSource::fill(RowRange rows, std::byte* to) {
  RowRange piece{rows.first, 0};
  for (; piece.first < rows.end(); piece.first += piece.count) {
    // pieces end where bands of storage chunks end, whatever rows were asked for
    piece.count = std::min(rows.end(), (piece.first / piece_rows_ + 1) * piece_rows_) - piece.first;
    std::byte* const place = to + (piece.first - rows.first) * row_bytes();
    if (layout_.rows_in_order()) {
      read_piece(piece, place);
      continue;
    }
    const Scratch scratch(scratch_, static_cast<std::size_t>(piece.count * row_bytes()));
    read_piece(piece, scratch.data());
    layout_.scatter(scratch.data(), piece.count * layout_.inner() * element_bytes(), 0, layout_.outer(), piece.count,
                    place);
  }
}

}  // namespace rowmill
