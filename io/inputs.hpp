#pragma once
// What is named on the command line: files, data sets in them, and patterns that stand for several files.
#include <functional>
#include <string>
#include <vector>

#include "io/input_plan.hpp"

namespace rowmill {

struct NamedInput {
  std::string path, dataset;  ///< dataset is empty where none is named
};

/// Each input cut into file and data set, in the order given. A path that is no file but holds *, ? or [ stands for the
/// files that it matches, in the order of their names' bytes. Throws Error(usage) if there are none.
std::vector<NamedInput> expand_inputs(const std::vector<std::string>& inputs);

/// A plan for each input; several are made at a time. Throws what `plan_one` throws for the first of those for which it
/// throws.
std::vector<InputPlan> plan_each(const std::vector<NamedInput>& inputs,
                                 const std::function<InputPlan(const NamedInput&)>& plan_one);

}  // namespace rowmill
