#pragma once
// Types that hold the values of others exactly, and the conversion to them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/dtype.hpp"

namespace rowmill {

/// The type of the fewest bytes that holds every value of all of these, at least one, an integer where there is a
/// choice. Bytes in native order unless all are of the same type and order. Nothing if there is none.
std::optional<ElementType> common_type(std::span<const ElementType> types);

/// Converts `count` elements without gaps to a type that holds them all, as common_type() gives. The buffers do not
/// overlap.
void convert_elements(const std::byte* from, ElementType type, std::int64_t count, std::byte* to, ElementType wide);

}  // namespace rowmill
