#pragma once
// Parts of a data set that were never written.
#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// True if they have no value of their own (HDF5 leaves the reader's buffer as it is). `creation`: the data set's
/// creation list.
bool leaves_buffer(hid_t creation);

}  // namespace rowmill::h5
