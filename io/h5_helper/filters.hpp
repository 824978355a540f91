#pragma once
// Names of filters, and whether all of a data set's filters are there.
#include <string>
#include <vector>

#include "io/filters/filters.hpp"
#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

struct Filter {
  H5Z_filter_t id = 0;
  std::string text;        ///< "gzip 4", "blosc"
  bool available = false;  ///< to HDF5
  FilterStep step;         ///< for decoding it here
};

std::vector<Filter> filters_of(hid_t creation);

}  // namespace rowmill::h5
