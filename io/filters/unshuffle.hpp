#pragma once
// Puts bytes that were sorted by their place in an element back in order.
#include <cstddef>

namespace rowmill::filters {

/// to[i * width + s] = from[s * count + i] for i < count, s < width. The buffers do not overlap.
void unshuffle(const std::byte* from, std::size_t count, std::size_t width, std::byte* to);

}  // namespace rowmill::filters
