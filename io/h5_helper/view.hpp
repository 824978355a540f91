#pragma once
// A data set seen as its format means it: which axis is rows, which values are missing, what the numbers mean.
#include <string>

#include "io/h5_helper/formats.hpp"
#include "io/h5_helper/plan.hpp"

namespace rowmill::h5 {

/// The data set's own axis that is the format's axis `axis`: MATLAB and loom count them from the other end.
int stored_axis(const Format& format, const OpenedDataset& dataset, int axis);

/// Why the format's rules forbid to read it; empty if they do not.
std::string why_not_in(const Format& format, hid_t dataset);

/// Adds to a plan what the format says: "format", "reason", "axis", "conventions", "names", warnings; and changes the
/// type where signed numbers stand for unsigned ones.
void apply_view(hid_t file, const OpenedDataset& dataset, const std::string& path, const Format& format, int axis,
                nlohmann::json& json);

}  // namespace rowmill::h5
