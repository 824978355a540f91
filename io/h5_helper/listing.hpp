#pragma once
// All data sets of a file.
#include <nlohmann/json.hpp>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// {"datasets": [{path, type, shape, storage, numeric, why_not}…], "notes": […]}. Each object once, whatever number of
/// links leads to it; external links are not followed. Throws Refusal.
nlohmann::json list_datasets(hid_t file);

/// "it holds /a, /g/b and 3 more" of the data sets whose names begin with `group`, a few of them by name.
std::string held_in(hid_t file, const std::string& group);

}  // namespace rowmill::h5
