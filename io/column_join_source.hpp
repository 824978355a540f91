#pragma once
// Sources side by side: each holds some of the columns.
#include <memory>
#include <vector>

#include "io/dense_source.hpp"
#include "io/input_plan.hpp"

namespace rowmill {

/// Throws Error(input) unless the parts have the same rows and fill each column of the whole once.
void check_columns_plan(const InputPlan& plan);

/// Rows of fp64, whatever the parts hold. `sources`: of the plan's parts, dense.
std::unique_ptr<Source> join_columns(const InputPlan& plan, std::vector<std::unique_ptr<Source>> sources);

}  // namespace rowmill
