#pragma once
// What the HDF5 helper says of a data set's format, taken into a plan; and plans of groups that are one matrix.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "io/input_plan.hpp"

namespace rowmill {

/// Format, row axis, conventions, names of columns of a data set's plan. Throws nlohmann::json::exception for an answer
/// that makes no sense.
void take_format(const nlohmann::json& answer, InputPlan& plan);

/// Plans a part as it is stored: the data set of that path, its axis of rows.
using PlanPart = std::function<InputPlan(const std::string& dataset, int row_axis)>;

/// The plan of a group. `plan`: path, data set and file as they are; `memory_limit`: as check_sparse_plan() takes it.
/// Throws as take_format(), and Error(input) where parts do not fit together.
InputPlan plan_of_group(const nlohmann::json& answer, InputPlan plan, const PlanPart& plan_part,
                        std::int64_t memory_limit);

/// Names of columns are those of a checked plan, or left out.
void check_names(InputPlan& plan);

}  // namespace rowmill
