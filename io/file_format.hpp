#pragma once
// What a file is, by its first bytes.
#include <string>

#include "io/read_file.hpp"

namespace rowmill {

/// "hdf5" or "npy". `wanted`: "auto" or one of those. Throws Error(input) saying what the file is if it is neither, or
/// not what is wanted; Error(usage) for a format that is not known.
std::string file_format(const ReadFile& file, const std::string& wanted);

}  // namespace rowmill
