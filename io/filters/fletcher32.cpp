#include <algorithm>
#include <bit>
#include <cstring>

#include "io/filters/undo.hpp"

namespace rowmill::filters {

namespace {

constexpr std::uint32_t kModulus = 65535;
constexpr std::size_t kLanes = 16, kPieceRows = 128, kPieceWords = kLanes * kPieceRows;

/// Sums of words in the order of this machine's memory: of w[i], and of (n - i) * w[i]. n is kPieceWords.
struct Sums {
  std::uint64_t plain = 0, weighted = 0;
};

/// Words lie in rows of kLanes; a lane's sums are added up first, without a product in the inner loop. Lane l of row k
/// has the weight kLanes * (kPieceRows - k) - l.
Sums sums_of_piece(const std::byte* from) {
  std::uint32_t plain[kLanes] = {}, weighted[kLanes] = {};
  for (std::size_t row = 0; row < kPieceRows; ++row) {
    std::uint16_t words[kLanes];
    std::memcpy(words, from + row * sizeof words, sizeof words);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      plain[lane] += words[lane];
      weighted[lane] += plain[lane];
    }
  }
  Sums sums;
  std::uint64_t less = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums.plain += plain[lane];
    sums.weighted += std::uint64_t{kLanes} * weighted[lane];
    less += lane * plain[lane];
  }
  sums.weighted -= less;
  return sums;
}

/// As adding with the carry brought round leaves it: 0 only if all that was added was 0.
std::uint32_t folded(std::uint64_t sum) {
  return sum == 0 ? 0 : static_cast<std::uint32_t>((sum - 1) % kModulus + 1);
}

/// Fletcher's checksum (J. G. Fletcher, 1982) of big-endian 16-bit words with modulus 65535; an odd last byte is the
/// upper half of a word. Words are added up with their bytes swapped or not: swapping is multiplying by 256 modulo
/// 65535, so it can be done once at the end.
std::uint32_t fletcher32(Bytes from) {
  Sums total;
  std::size_t at = 0;
  for (; from.size() - at >= 2 * kPieceWords; at += 2 * kPieceWords) {
    const Sums piece = sums_of_piece(from.data() + at);
    total.weighted = folded(total.weighted + kPieceWords * total.plain + piece.weighted);
    total.plain = folded(total.plain + piece.plain);
  }
  for (; at < from.size(); at += 2) {
    std::uint16_t word = 0;
    std::memcpy(&word, from.data() + at, std::min<std::size_t>(2, from.size() - at));
    total.plain += word;
    total.weighted = folded(total.weighted + total.plain);
  }
  const std::uint32_t swap = std::endian::native == std::endian::little ? 256 : 1;
  return folded(std::uint64_t{folded(total.weighted)} * swap) << 16 | folded(std::uint64_t{folded(total.plain)} * swap);
}

/// With the bytes of each half exchanged, as HDF5 1.6.2 and older wrote it on little-endian machines; read by HDF5 too.
std::uint32_t with_swapped_halves(std::uint32_t sum) {
  return (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
}

}  // namespace

Bytes verified_fletcher32(const FilterStep& step, Bytes from) {
  if (from.size() < 4) fail(step, "is shorter than its checksum: it is truncated");
  const Bytes data = from.first(from.size() - 4);
  const std::uint32_t stored = little_u32(from, data.size()), found = fletcher32(data);
  if (stored != found && stored != with_swapped_halves(found)) fail(step, "its checksum is wrong: it is damaged");
  return data;
}

}  // namespace rowmill::filters
