#pragma once
// Which elements can be reduced, and how: the same rules for every communicator.
#include <cstddef>
#include <cstdint>

#include "core/partial.hpp"

namespace rowmill {

/// Bytes of one element. Throws std::invalid_argument for kinds that are not reduced as they are (binned).
std::size_t reducible_bytes(ElementKind kind);

/// Throws std::invalid_argument unless the result is free of order (i8, i32, i64: sum, min, max; f64: min, max) and
/// count is not negative.
void check_reducible(ElementKind kind, Combine how, std::int64_t count);

}  // namespace rowmill
