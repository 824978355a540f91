#include "io/helper_source.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "io/h5_helper_answer.hpp"
#include "io/layout_cost.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kPieceBytes = 8 << 20;
constexpr std::int64_t kMaxBandBytes = 64 << 20;
/// Storage chunks that lie side by side in one band of rows.
std::int64_t chunks_of_band(const InputPlan& plan) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < plan.chunk.size(); ++i) {
    if (static_cast<int>(i) != plan.row_axis) count *= (plan.shape[i] - 1) / plan.chunk[i] + 1;
  }
  return count;
}

}  // namespace

HelperSource::HelperSource(const InputPlan& plan, std::string program, HelperLimits limits)
    : DenseSource(info_of(plan)),
      limits_(limits),
      layout_(plan.shape, plan.row_axis, false, static_cast<std::int64_t>(size_of(plan.type))),
      readers_(plan, std::move(program), limits) {
  const std::int64_t most = std::max(row_bytes(), std::min(kMaxBandBytes, limits.memory_bytes / 4));
  const std::int64_t chunk_rows = std::min(info().storage_chunk_rows, std::max<std::int64_t>(info().rows, 1));
  const std::int64_t rows_of_most = std::max<std::int64_t>(1, most / row_bytes());
  if (chunk_rows <= rows_of_most) {
    // whole bands of storage chunks: each is decompressed once
    piece_rows_ = chunk_rows * std::max<std::int64_t>(1, kPieceBytes / (chunk_rows * row_bytes()));
  } else {
    piece_rows_ = rows_of_most;
  }
  choose_cache(plan);
  const std::int64_t shared = std::min(piece_rows_, std::max<std::int64_t>(info().rows, 1)) * row_bytes();
  readers_.set_opening({cache_bytes_, cache_slots_, shared});
  needs_memory_a_reader(kHelperBytes + shared + cache_bytes_);
  is_read_elsewhere();
  set_layout_cost(band_cost(info()));
}

void HelperSource::choose_cache(const InputPlan& plan) {
  if (plan.chunk.empty()) return;
  const std::int64_t chunk_rows = std::min(info().storage_chunk_rows, std::max<std::int64_t>(info().rows, 1));
  // blocks may be lower than a band: what is decompressed is kept for the next of them
  std::int64_t band_bytes = 0;
  if (__builtin_mul_overflow(chunk_rows, row_bytes(), &band_bytes)) return;
  band_bytes += band_bytes / 4;
  if (band_bytes > limits_.memory_bytes / 2) return;
  cache_bytes_ = std::max(cache_bytes_, band_bytes);
  cache_slots_ = std::clamp<std::int64_t>(8 * chunks_of_band(plan) + 1, 521, 1000003);
}

void HelperSource::fill_piece(HelperReader& reader, RowRange rows, std::byte* to) {
  const auto answer = reader.client->ask({{"op", "read"}, {"first", rows.first}, {"count", rows.count}}, "");
  const std::int64_t bytes = rows.count * row_bytes();
  const auto given = answer.json.find("bytes"), asked = answer.json.find("asked");
  if (given == answer.json.end() || *given != bytes) {
    throw Error(ExitCode::input,
                info().name() + ": the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  }
  if (asked != answer.json.end() && asked->is_number_integer())
    count_bytes(std::max<std::int64_t>(0, asked->get<std::int64_t>()));
  const std::byte* from = reader.client->shared().data();
  if (layout_.rows_in_order()) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  } else {
    layout_.scatter(from, rows.count * layout_.inner() * element_bytes(), 0, layout_.outer(), rows.count, to);
  }
}

void HelperSource::fill(RowRange rows, std::byte* to) {
  RowRange piece{rows.first, rows.count};
  try {
    HelperReader reader = readers_.take(rows.first / info().storage_chunk_rows);
    while (piece.first < rows.end()) {
      // pieces end where bands of storage chunks end, whatever rows were asked for
      piece.count = std::min(rows.end(), (piece.first / piece_rows_ + 1) * piece_rows_) - piece.first;
      fill_piece(reader, piece, to + (piece.first - rows.first) * row_bytes());
      piece.first = piece.end();
    }
    reader.band = (rows.end() - 1) / info().storage_chunk_rows;
    readers_.give_back(std::move(reader));
  } catch (const Error& e) {
    const std::string where = " (rows " + std::to_string(piece.first) + " to " + std::to_string(piece.end() - 1) + ")";
    throw Error(e.code(), e.what() + where);
  }
}

}  // namespace rowmill
