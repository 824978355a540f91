#pragma once
// The header of a .npy file (format: numpy.lib.format, versions 1.0 to 3.0).
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"

namespace rowmill {

struct NpyHeader {
  std::string descr;  ///< as it stands: "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// The Python dictionary of the header: exactly the three keys, each once. Throws Error(input) with `name` in front.
NpyHeader parse_npy_header(const std::string& text, const std::string& name);

/// Throws Error(input) naming a type that cannot be milled.
ElementType npy_element(const std::string& descr, const std::string& name);

}  // namespace rowmill
