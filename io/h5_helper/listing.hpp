#pragma once
// All data sets of a file.
#include <nlohmann/json.hpp>
#include <string>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// {"datasets": [{path, type, shape, storage, numeric, why_not, part}…], "notes": […], "format", "reason"}. Each object
/// once, whatever number of links leads to it; external links are not followed. Groups that are one matrix in their
/// format stand as one data set; what they are made of, and axes of other data sets, are marked as parts, which nobody
/// means who names none. `format`: "auto" or the one that is given. Throws Refusal.
nlohmann::json list_datasets(hid_t file, const std::string& file_name, const std::string& format);

/// "it holds /a, /g/b and 3 more" of the data sets whose names begin with `group`, a few of them by name.
std::string held_in(hid_t file, const std::string& file_name, const std::string& group);

}  // namespace rowmill::h5
