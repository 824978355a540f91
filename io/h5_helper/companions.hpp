#pragma once
// External raw storage and sources of virtual data sets: all there, all in the file's own folder, all large enough.
// HDF5 itself gives fill values where they are not.
#include <string>
#include <vector>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// Throws Refusal naming the external raw file that is missing, too short or outside the folder.
void check_external(hid_t creation, const std::vector<hsize_t>& shape, std::size_t element_bytes);

/// The file of a virtual data set's source i, as it is written there.
std::string virtual_file(hid_t creation, std::size_t i);

/// Throws Refusal naming the source that is missing, too small or outside the folder. `depth`: virtual sources of
/// virtual sources.
void check_virtual(hid_t file, hid_t creation, int depth = 0);

}  // namespace rowmill::h5
