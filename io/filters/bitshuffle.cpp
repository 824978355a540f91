// The filter of the bitshuffle library (K. Masui and others, "A compression scheme for radio data in high performance
// computing", Astronomy and Computing 12, 2015). In a block of elements, bit b of byte j of all of them stands
// together, the first element in the lowest bit; blocks may be compressed. Elements beyond a multiple of 8 stand
// behind, as they are.
#include <algorithm>
#include <cstring>

#include "io/filters/undo.hpp"
#include "io/filters/unshuffle.hpp"

namespace rowmill::filters {

namespace {

enum Compression : std::uint32_t { none = 0, lz4 = 2, zstd = 3 };

constexpr std::size_t kBlockBytes = 8192, kFewestElements = 128, kGroup = 8;

/// What the library takes for itself.
std::size_t default_block(std::size_t width) {
  return std::max(kBlockBytes / width / kGroup * kGroup, kFewestElements);
}

/// Places side by side in a row, a byte each; a vector of the compiler's.
constexpr std::size_t kPlaces = 16;
typedef std::uint64_t Places __attribute__((vector_size(kPlaces)));

/// Exchanges the bits of `a` that `mask` moved up by `shift` selects with those of `b` that `mask` selects.
inline void exchange(Places& a, Places& b, unsigned shift, std::uint64_t mask) {
  const Places differ = ((a >> shift) ^ b) & mask;
  b ^= differ;
  a ^= differ << shift;
}

/// Eight rows of bits: transposes each 8 × 8 bits that stand in one place of all rows.
inline void transpose_bits(Places (&row)[8]) {
  for (std::size_t i = 0; i < 4; ++i) exchange(row[i], row[i + 4], 4, 0x0f0f0f0f0f0f0f0f);
  for (const std::size_t i : {0, 1, 4, 5}) exchange(row[i], row[i + 2], 2, 0x3333333333333333);
  for (const std::size_t i : {0, 2, 4, 6}) exchange(row[i], row[i + 1], 1, 0x5555555555555555);
}

/// Up to kPlaces places of eight rows that lie `stride` bytes apart, to rows that lie `apart` bytes apart.
inline void transpose_places(const std::byte* from, std::size_t stride, std::byte* to, std::size_t apart,
                             std::size_t places) {
  Places row[8] = {};
  for (std::size_t b = 0; b < 8; ++b) std::memcpy(&row[b], from + b * stride, places);
  transpose_bits(row);
  for (std::size_t k = 0; k < 8; ++k) std::memcpy(to + k * apart, &row[k], places);
}

/// Byte j of the elements: eight rows of bits from `from` on, `bytes` each, become rows of bytes: row k holds those of
/// the elements k, k + 8, k + 16, …
void to_bytes(const std::byte* from, std::size_t bytes, std::byte* to, std::size_t apart) {
  std::size_t at = 0;
  for (; at + kPlaces <= bytes; at += kPlaces) transpose_places(from + at, bytes, to + at, apart, kPlaces);
  if (at < bytes) transpose_places(from + at, bytes, to + at, apart, bytes - at);
}

/// `elements` (a multiple of 8) of `width` bytes. `from` may be `to`, `scratch` has their size. Eight elements are
/// taken for one of 8 * width bytes, whose bytes are gathered first and then put in order.
void unshuffle_bits(const std::byte* from, std::size_t elements, std::size_t width, std::byte* to, Room scratch) {
  const std::size_t groups = elements / kGroup;
  for (std::size_t j = 0; j < width; ++j) {
    to_bytes(from + j * kGroup * groups, groups, scratch.data() + j * groups, width * groups);
  }
  unshuffle(scratch.data(), groups, kGroup * width, to);
}

/// Reads one block after the other from what is stored.
class Blocks {
 public:
  Blocks(const FilterStep& step, Compression compression, Bytes from, FilterScratch& scratch)
      : step_(step), compression_(compression), left_(from), scratch_(scratch) {}

  /// The shuffled bits of a block; compressed ones are written to `to`, which is as large.
  const std::byte* next(Room to) {
    if (compression_ == none) return take(to.size()).data();
    const Bytes stored = take(big_u32(take(4), 0));
    if (compression_ == lz4) {
      decompress_lz4_block(step_, stored, to);
    } else if (decompress_zstd(step_, stored, to, scratch_) != to.size()) {
      fail(step_, "has a block that is too short: it is damaged");
    }
    return to.data();
  }
  Bytes take(std::size_t bytes) {
    if (bytes > left_.size()) fail(step_, "is truncated");
    const Bytes taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }

 private:
  const FilterStep& step_;
  Compression compression_;
  Bytes left_;
  FilterScratch& scratch_;
};

}  // namespace

/// In front of compressed blocks stand, big-endian, the bytes of the data (8) and of a block (4), and before each block
/// its stored bytes (4).
std::size_t undo_bitshuffle(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch) {
  const std::size_t width = step.values[2];
  std::size_t block = step.values.size() > 3 ? step.values[3] : 0;
  const auto compression = static_cast<Compression>(step.values.size() > 4 ? step.values[4] : 0);
  std::uint64_t bytes = from.size();
  if (compression != none) {
    if (from.size() < 12) fail(step, "is shorter than its head: it is truncated");
    bytes = big_u64(from, 0);
    block = big_u32(from, 8) / width;
    from = from.subspan(12);
  }
  if (block == 0) block = default_block(width);
  if (block % kGroup != 0) fail(step, "has blocks that are no multiple of 8 elements: it is damaged");
  check_room(step, bytes, to);
  if (bytes % width != 0) fail(step, "does not hold whole elements: it is damaged");
  const std::size_t count = bytes / width, shuffled = count / kGroup * kGroup;
  Blocks blocks(step, compression, from, scratch);
  const Room gathered = scratch.memory(FilterScratch::within_step, std::min(block, shuffled) * width);
  for (std::size_t done = 0; done < shuffled; done += block) {
    const std::size_t elements = std::min(block, shuffled - done);
    const Room place = to.subspan(done * width, elements * width);
    unshuffle_bits(blocks.next(place), elements, width, place.data(), gathered);
  }
  const Bytes rest = blocks.take((count - shuffled) * width);
  if (!rest.empty()) std::memcpy(to.data() + shuffled * width, rest.data(), rest.size());
  return bytes;
}

}  // namespace rowmill::filters
