#pragma once
// A dense source with its format's conventions applied: missing values marked, scale and offset applied.
#include <memory>

#include "io/conventions.hpp"
#include "io/source.hpp"

namespace rowmill {

/// Missing values are matched in the stored type. With a scale or an offset, rows come as fp64 and missing values as
/// NaN; else in the stored type, missing values as NaN in floating types and marked in a mask in others.
std::unique_ptr<Source> with_conventions(std::unique_ptr<Source> source, const Conventions& conventions);

}  // namespace rowmill
