#include <libaec.h>

#include <cstring>

#include "io/filters/undo.hpp"
#include "io/filters/unshuffle.hpp"

namespace rowmill::filters {

namespace {

// szlib.h
constexpr std::uint32_t kMostSignificantFirst = 16, kNearestNeighbour = 32;

/// How szip's client data is told to the coder (libaec's sz_compat.c): 32 and 64 bits as separate bytes, lines padded
/// to whole blocks.
struct Shape {
  explicit Shape(const FilterStep& step)
      : options(step.values[0]), block(step.values[1]), bits(step.values[2]), line(step.values[3]) {
    blocks_of_line = (line + block - 1) / block;
    if (bits == 32 || bits == 64) {
      planes = bits / 8;
      bits = 8;
    }
    pixel_bytes = bits > 16 ? 4 : bits > 8 ? 2 : 1;
  }
  std::size_t line_bytes() const { return std::size_t{line} * pixel_bytes; }
  std::size_t padded_line_bytes() const { return std::size_t{blocks_of_line} * block * pixel_bytes; }
  bool padded() const { return padded_line_bytes() != line_bytes(); }
  std::size_t padded_bytes(std::size_t bytes) const {
    return padded() ? (bytes + line_bytes() - 1) / line_bytes() * padded_line_bytes() : bytes;
  }

  std::uint32_t options, block, bits, line, blocks_of_line = 0;
  std::size_t planes = 1, pixel_bytes = 1;
};

/// Fills `to`.
void decompress(const FilterStep& step, const Shape& shape, Bytes from, Room to) {
  aec_stream stream = {};
  stream.bits_per_sample = shape.bits;
  stream.block_size = shape.block;
  stream.rsi = shape.blocks_of_line;
  stream.flags = AEC_NOT_ENFORCE | ((shape.options & kMostSignificantFirst) != 0 ? AEC_DATA_MSB : 0) |
                 ((shape.options & kNearestNeighbour) != 0 ? AEC_DATA_PREPROCESS : 0);
  stream.next_in = reinterpret_cast<const unsigned char*>(from.data());
  stream.avail_in = from.size();
  stream.next_out = reinterpret_cast<unsigned char*>(to.data());
  stream.avail_out = to.size();
  const int status = aec_buffer_decode(&stream);
  if (status == AEC_MEM_ERROR) fail(step, "libaec has no memory");
  if (status != AEC_OK || stream.total_out != to.size()) fail(step, "is damaged or truncated");
}

/// Closes the gaps behind the lines.
void remove_padding(const Shape& shape, Room padded) {
  std::size_t to = shape.line_bytes();
  for (std::size_t from = shape.padded_line_bytes(); from < padded.size(); from += shape.padded_line_bytes()) {
    std::memmove(padded.data() + to, padded.data() + from, shape.line_bytes());
    to += shape.line_bytes();
  }
}

}  // namespace

std::size_t szip_scratch_bytes(const FilterStep& step, std::size_t bytes) {
  return Shape(step).padded_bytes(bytes);
}

/// HDF5 puts the number of bytes, little-endian, in front of what szip gives (H5Zszip.c).
std::size_t undo_szip(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch) {
  if (from.size() < 4) fail(step, "is shorter than its head: it is truncated");
  const std::size_t bytes = little_u32(from, 0);
  from = from.subspan(4);
  check_room(step, bytes, to);
  const Shape shape(step);
  if (bytes % (shape.planes * shape.pixel_bytes) != 0) fail(step, "does not hold whole elements: it is damaged");
  if (!shape.padded() && shape.planes == 1) {
    decompress(step, shape, from, to.first(bytes));
    return bytes;
  }
  const Room padded = scratch.memory(FilterScratch::within_step, shape.padded_bytes(bytes));
  decompress(step, shape, from, padded);
  if (shape.padded()) remove_padding(shape, padded);
  unshuffle(padded.data(), bytes / shape.planes, shape.planes, to.data());
  return bytes;
}

}  // namespace rowmill::filters
