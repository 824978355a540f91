#include "io/filters/unshuffle.hpp"

#include <cstdint>
#include <cstring>

namespace rowmill::filters {

namespace {

// The compiler's own vectors: it knows how to interleave them on each processor.
constexpr std::size_t kLanes = 16;
typedef std::uint8_t Vector __attribute__((vector_size(kLanes)));

/// Element by element from `streams` vectors that lie behind one another: interleaving the first half of them with the
/// second half, log2(streams) times.
template <std::size_t streams>
void interleave(Vector (&v)[streams]) {
  for (std::size_t stage = 1; stage < streams; stage *= 2) {
    Vector next[streams];
    for (std::size_t s = 0; s < streams / 2; ++s) {
      next[2 * s] =
          __builtin_shufflevector(v[s], v[s + streams / 2], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * s + 1] = __builtin_shufflevector(v[s], v[s + streams / 2], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
    for (std::size_t s = 0; s < streams; ++s) v[s] = next[s];
  }
}

/// `streams` neighbouring bytes of each element. `whole`: an element has no others.
template <std::size_t streams, bool whole>
void unshuffle_streams(const std::byte* from, std::size_t count, std::size_t width, std::byte* to) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vector v[streams];
    for (std::size_t s = 0; s < streams; ++s) std::memcpy(&v[s], from + s * count + i, kLanes);
    interleave(v);
    if constexpr (whole) {
      std::memcpy(to + i * streams, v, sizeof v);
    } else {
      std::byte elements[kLanes * streams];
      std::memcpy(elements, v, sizeof v);
      for (std::size_t e = 0; e < kLanes; ++e) {
        std::memcpy(to + (i + e) * width, elements + e * streams, streams);
      }
    }
  }
  for (; i < count; ++i) {
    for (std::size_t s = 0; s < streams; ++s) to[i * width + s] = from[s * count + i];
  }
}

}  // namespace

void unshuffle(const std::byte* from, std::size_t count, std::size_t width, std::byte* to) {
  if (width == 2) return unshuffle_streams<2, true>(from, count, width, to);
  if (width == 4) return unshuffle_streams<4, true>(from, count, width, to);
  if (width == 8) return unshuffle_streams<8, true>(from, count, width, to);
  std::size_t s = 0;
  for (; s + 16 <= width; s += 16) unshuffle_streams<16, false>(from + s * count, count, width, to + s);
  for (; s + 4 <= width; s += 4) unshuffle_streams<4, false>(from + s * count, count, width, to + s);
  for (; s < width; ++s) unshuffle_streams<1, false>(from + s * count, count, width, to + s);
}

}  // namespace rowmill::filters
