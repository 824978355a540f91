#pragma once
// Attributes by which netCDF says what a variable's numbers mean.
#include "io/h5_helper/opened.hpp"

#include <nlohmann/json.hpp>

namespace rowmill::h5 {

/// Adds "conventions" to a plan, changes its "dtype" for _Unsigned, and warns of attributes that cannot be applied.
void add_netcdf_conventions(const OpenedDataset& dataset, nlohmann::json& json);

/// The data set's fill value is netCDF's own for its type, and of a type in which nobody means that value.
bool has_netcdf_fill(const OpenedDataset& dataset);

/// An axis of other variables, not data.
bool is_dimension(hid_t dataset);

}  // namespace rowmill::h5
