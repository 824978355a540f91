#pragma once
// Lists of names: what columns are called.
#include <string>
#include <vector>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// The strings (or integers, as digits) of a list, or of the member "index" or "_index" of a list of compounds. Empty
/// if there is none at that path, it is of another kind, or it is longer than names can be carried. Throws Refusal if
/// it cannot be read.
std::vector<std::string> read_names(hid_t location, const std::string& path);

}  // namespace rowmill::h5
