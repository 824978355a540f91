#pragma once
// Rows of an opened data set into the shared memory.
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/h5_helper/opened.hpp"

namespace rowmill::h5 {

/// Reads indices [first, first + count) of `axis`, all of the other axes, in the order of the file; returns the bytes.
/// Throws Refusal.
std::size_t read_rows(const OpenedDataset& dataset, int axis, std::int64_t first, std::int64_t count,
                      std::span<std::byte> to);

}  // namespace rowmill::h5
