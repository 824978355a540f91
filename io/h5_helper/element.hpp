#pragma once
// HDF5 datatypes, sorted into what can be milled and what cannot.
#include <string>

#include "core/dtype.hpp"
#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

struct Element {
  bool numeric = false;
  ElementType type;      ///< as rows are delivered
  bool convert = false;  ///< HDF5 converts to `type` (odd sizes and precisions); else the bytes are as stored
  std::string text;      ///< as people say it: "float32", "int24", "bool", "compound {x, y}"
};

Element classify(hid_t datatype);

/// The datatype that H5Dread is asked to deliver.
Id memory_type(hid_t datatype, const Element& element);

}  // namespace rowmill::h5
