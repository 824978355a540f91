#pragma once
// A dense source with its format's conventions applied: missing values marked, scale and offset applied.
#include <memory>

#include "io/conventions.hpp"
#include "io/source.hpp"

namespace rowmill {

/// The type that with_conventions() delivers for what is stored as `type`.
ElementType delivered_type(ElementType type, const Conventions& conventions);

/// True if rows may come with a mask.
bool delivers_mask(ElementType type, const Conventions& conventions);

/// Missing values are matched in the stored type. With a scale or an offset, rows come as fp64 and missing values as
/// NaN; else in the stored type, missing values as NaN in floating types and marked in a mask in others.
std::unique_ptr<Source> with_conventions(std::unique_ptr<Source> source, const Conventions& conventions);

}  // namespace rowmill
