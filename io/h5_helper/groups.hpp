#pragma once
// Groups that are one matrix: sparse ones, and frames of pandas.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/h5_helper/formats.hpp"

namespace rowmill::h5 {

/// A sparse matrix in three data sets below a group.
struct SparseGroup {
  std::string format, reason;
  hsize_t rows = 0, columns = 0;
  bool by_columns = false;  ///< pointers are of columns (CSC), not of rows
  std::string pointers, indices, values;
};

/// Without a value if the group is none. Throws Refusal if it is one that makes no sense.
std::optional<SparseGroup> sparse_group(hid_t group);

/// How a group that is one matrix is read: what the program makes a plan of (protocol.hpp). Without a value if it is no
/// such group in this format. Throws Refusal if it is one that cannot be read, WrongUsage for an axis that it has not.
std::optional<nlohmann::json> plan_group(hid_t file, hid_t group, const std::string& path, const Format& format,
                                         int axis);

/// The group's line in a list of data sets; without a value if it is not one matrix.
std::optional<nlohmann::json> list_group(hid_t group, const std::string& path);

/// Adds "names" to a plan where the format has one for each column, else a warning if there are some. `object`: the
/// group or data set at `path`.
void add_names(hid_t file, hid_t object, const std::string& path, const std::string& format, hsize_t columns,
               nlohmann::json& json);

}  // namespace rowmill::h5
