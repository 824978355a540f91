#pragma once
// What the HDF5 helper's answers make of a data set, or of a group that is one matrix. Nothing they say is trusted.
#include <cstdint>
#include <functional>
#include <string>

#include "io/h5_helper_answer.hpp"
#include "io/input_plan.hpp"

namespace rowmill {

/// Asks the helper for the plan of a data set. Throws Error.
using AskForPlan =
    std::function<H5HelperClient::Answer(const std::string& dataset, const std::string& format, int row_axis)>;

/// Plans `plan.dataset` along `plan.row_axis` of a file whose path, length and time `plan` holds; a group asks for its
/// parts in turn. `format`: "auto", or the one that is given. The result is checked (check_plan). Throws Error(input).
InputPlan plan_of_answers(InputPlan plan, const std::string& format, std::int64_t memory_limit, const AskForPlan& ask);

/// Runs `take`, which reads an answer field by field; a field that is not there or of another kind is a damaged file.
template <typename F>
auto trust_nothing(const std::string& subject, F&& take) {
  try {
    return take();
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::input, subject + ": the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  }
}

}  // namespace rowmill
