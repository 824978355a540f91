#pragma once
// Which program's conventions a file follows.
#include <string>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

struct Format {
  std::string name = "hdf5";  ///< "hdf5", "netcdf", "matlab", "anndata", "10x", "loom", "pandas"
  std::string reason;         ///< "it says so in …"; empty for hdf5
};

/// What the whole file seems to be, by attributes and known places. `file_name`: for its ending.
Format format_of_file(hid_t file, const std::string& file_name);

/// What one object is: by its own attributes, else as the file. `wanted`: "auto", or the format that is given.
Format format_of_object(hid_t file, hid_t object, const std::string& file_name, const std::string& wanted);

}  // namespace rowmill::h5
