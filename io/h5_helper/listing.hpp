#pragma once
// All data sets of a file.
#include <nlohmann/json.hpp>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// {"datasets": [{path, type, shape, storage, numeric, why_not}…], "notes": […]}. Each object once, whatever number of
/// links leads to it; external links are not followed. Throws Refusal.
nlohmann::json list_datasets(hid_t file);

}  // namespace rowmill::h5
