#pragma once
// Frames and series of pandas in its fixed format: blocks of columns of one type each, and their order.
#include <nlohmann/json.hpp>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// As plan_group(). Throws Refusal where a frame cannot be read.
nlohmann::json plan_frame(hid_t group, int axis);

/// Fills in the line of a frame; false if the group is none.
bool list_frame(hid_t group, nlohmann::json& line);

}  // namespace rowmill::h5
