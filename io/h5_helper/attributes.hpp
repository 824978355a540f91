#pragma once
// Attributes as plain values, and objects that may or may not be there.
#include <optional>
#include <string>
#include <vector>

#include "io/h5_helper/h5.hpp"
#include "io/number.hpp"

namespace rowmill::h5 {

bool has_attribute(hid_t object, const char* name);

/// A string of either kind, without padding. Empty if there is no such attribute, or it is no single string.
std::optional<std::string> text_attribute(hid_t object, const char* name);

/// The numbers of a scalar or a list. Empty if there is no such attribute, it is not numeric, or it is absurdly long.
std::vector<Number> number_attribute(hid_t object, const char* name);

/// The object at a path below `location`, as HDF5's type tells; without a value if there is none. External links are
/// not followed.
std::optional<Id> find_object(hid_t location, const std::string& path);
std::optional<Id> find_group(hid_t location, const std::string& path);
std::optional<Id> find_dataset(hid_t location, const std::string& path);

/// False if its values lie in other files. What is read beside a plan (names, shapes) must lie in this one.
bool is_self_contained(hid_t dataset);

/// Names of a group's own links, at most `most`.
std::vector<std::string> link_names(hid_t group, std::size_t most);

}  // namespace rowmill::h5
