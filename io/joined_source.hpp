#pragma once
// Files joined along rows, each opened when rows of it are wanted, few of them at a time.
#include <functional>
#include <memory>

#include "io/input_plan.hpp"
#include "io/source.hpp"

namespace rowmill {

/// Opens the source of one part.
using OpenPart = std::function<std::unique_ptr<Source>(const InputPlan&)>;

/// Of a plan that join_plans() made. Types that differ are converted to the plan's.
std::unique_ptr<Source> join_rows(InputPlan plan, OpenPart open);

}  // namespace rowmill
