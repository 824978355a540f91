#pragma once
// Several files joined along rows: are they of one kind, and what is known of them together.
#include <cstdint>
#include <vector>

#include "io/input_plan.hpp"

namespace rowmill {

/// True if rows come sparse.
bool is_sparse(const InputPlan& plan);

/// The type in which a source of this plan delivers rows, its conventions applied.
ElementType delivered_type(const InputPlan& plan);

/// The rows of checked plans one below another. Throws Error(input) naming the first that does not fit the others: in
/// columns, their names, or types that no type holds together.
InputPlan join_plans(std::vector<InputPlan> parts, std::int64_t row_limit);

/// Sets of a joined source's info what its parts tell.
void describe_parts(const InputPlan& plan, SourceInfo& info);

}  // namespace rowmill
