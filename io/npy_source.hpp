#pragma once
// .npy files, read in place.
#include "io/input_plan.hpp"
#include "io/read_file.hpp"

namespace rowmill {

/// Throws Error(input) for a header that is damaged, a type that is not numeric, or a file that is too short. The
/// plan's source is a ContiguousSource.
InputPlan plan_npy(const ReadFile& file, int row_axis, std::int64_t row_limit);

}  // namespace rowmill
