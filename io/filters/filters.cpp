#include "io/filters/filters.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/filters/undo.hpp"

namespace rowmill {

namespace {

using namespace filters;

using Undo = std::size_t (*)(const FilterStep&, Bytes, Room, FilterScratch&);

constexpr std::size_t kMostSteps = 32;  // HDF5 has no more, and a mask has no more bits

struct KnownUndo {
  std::uint32_t id;
  Undo undo;
};

constexpr std::array kUndo = {KnownUndo{kDeflate, undo_deflate}, KnownUndo{kShuffle, undo_shuffle},
                              KnownUndo{kSzip, undo_szip},       KnownUndo{kLzf, undo_lzf},
                              KnownUndo{kBlosc, undo_blosc},     KnownUndo{kLz4, undo_lz4},
                              KnownUndo{kZstd, undo_zstd},       KnownUndo{kBitshuffle, undo_bitshuffle}};

/// Null for the checksum, which leaves the bytes in front of it where they are.
Undo undo_of(std::uint32_t id) {
  for (const KnownUndo& known : kUndo) {
    if (known.id == id) return known.undo;
  }
  return nullptr;
}

/// Bytes that are there once all steps but the first `left` are undone: known where those are shuffle and checksums,
/// else bounded, since what does not shrink grows a little.
std::size_t bytes_before(std::span<const FilterStep> steps, std::size_t left, std::uint32_t mask,
                         std::size_t chunk_bytes) {
  std::size_t bytes = chunk_bytes;
  for (std::size_t i = 0; i < left; ++i) {
    if ((mask >> i & 1) != 0 || steps[i].id == kShuffle) continue;
    if (steps[i].id != kFletcher32) return 2 * chunk_bytes + 4096;
    bytes += 4;
  }
  return bytes;
}

}  // namespace

FilterScratch::~FilterScratch() {
  for (const std::span<std::byte> memory : memory_) {
    if (!memory.empty()) pool_.release(memory.data(), memory.size());
  }
}

std::span<std::byte> FilterScratch::memory(Use use, std::size_t bytes) {
  std::span<std::byte>& memory = memory_[use];
  if (memory.size() < bytes) {
    if (!memory.empty()) pool_.release(memory.data(), memory.size());
    memory = {};
    memory = {static_cast<std::byte*>(pool_.allocate(bytes)), bytes};
  }
  return memory.first(bytes);
}

FilterChain::FilterChain(std::vector<FilterStep> steps) : steps_(std::move(steps)) {
  if (steps_.size() > kMostSteps) throw FilterError("it has more than 32 filters: the file is damaged");
  for (const FilterStep& step : steps_) {
    if (const std::string why = why_not_decoded(step); !why.empty()) throw FilterError(why);
  }
}

std::size_t FilterChain::scratch_bytes(std::size_t chunk_bytes) const {
  std::size_t between = 0, buffers = 0, within = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (undo_of(steps_[i].id) == nullptr) continue;
    const std::size_t bytes = bytes_before(steps_, i, 0, chunk_bytes);
    if (i > 0) {
      between = std::max(between, bytes);
      buffers = std::min<std::size_t>(buffers + 1, 2);
    }
    if (steps_[i].id == kBitshuffle) within = std::max(within, bytes);
    if (steps_[i].id == kSzip) within = std::max(within, szip_scratch_bytes(steps_[i], bytes));
  }
  return buffers * between + within;
}

void FilterChain::decode(Bytes stored, std::uint32_t mask, Room to, FilterScratch& scratch) const {
  Bytes now = stored;
  auto next = FilterScratch::even_step;
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const FilterStep& step = steps_[i];
    if ((mask >> i & 1) != 0) continue;
    const Undo undo = undo_of(step.id);
    if (undo == nullptr) {
      now = verified_fletcher32(step, now);
      continue;
    }
    const std::uint32_t before = (std::uint32_t{1} << i) - 1;
    const bool last = (~mask & before) == 0;
    const Room room = last ? to : scratch.memory(next, bytes_before(steps_, i, mask, to.size()));
    now = room.first(undo(step, now, room, scratch));
    next = next == FilterScratch::even_step ? FilterScratch::odd_step : FilterScratch::even_step;
  }
  if (now.size() != to.size()) {
    throw FilterError("it holds " + std::to_string(now.size()) + " bytes where " + std::to_string(to.size()) +
                      " belong: it is damaged");
  }
  if (now.data() != to.data() && !to.empty()) std::memcpy(to.data(), now.data(), to.size());
}

}  // namespace rowmill
