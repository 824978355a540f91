#pragma once
// What a file is, by its first bytes.
#include <string>
#include <vector>

#include "io/read_file.hpp"

namespace rowmill {

/// What --format takes beside "auto". All but "npy" are conventions within HDF5; "hdf5" is none of them: as stored.
const std::vector<std::string>& file_formats();

/// "hdf5" or "npy". `wanted`: "auto" or one of file_formats(). Throws Error(input) saying what the file is if it is
/// neither, or not what is wanted; Error(usage) for a format that is not known.
std::string file_format(const ReadFile& file, const std::string& wanted);

}  // namespace rowmill
