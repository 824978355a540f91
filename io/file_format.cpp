#include "io/file_format.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"

namespace rowmill {

namespace {

constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
constexpr std::string_view kNpy = "\x93NUMPY";

std::string bytes_at(const ReadFile& file, std::int64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  bytes.resize(static_cast<std::size_t>(file.read_some(offset, std::as_writable_bytes(std::span(bytes)))));
  return bytes;
}

/// The signature lies at byte 0, or behind a user block of 512, 1024, 2048, … bytes.
bool has_hdf5_signature(const ReadFile& file) {
  for (std::int64_t offset = 0; offset < file.bytes(); offset = offset == 0 ? 512 : 2 * offset) {
    if (bytes_at(file, offset, kHdf5.size()) == kHdf5) return true;
  }
  return false;
}

bool is_text(const std::string& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x20 || u == '\n' || u == '\r' || u == '\t';
  });
}

std::string what_it_is(const std::string& head) {
  struct Known {
    std::string_view start;
    const char* text;
  };
  static constexpr std::array kKnown = {
      Known{"CDF\x01", "is a classic netCDF file, not HDF5: convert it (nccopy -k nc4)"},
      Known{"CDF\x02", "is a classic netCDF file (64-bit offset), not HDF5: convert it (nccopy -k nc4)"},
      Known{"CDF\x05", "is a classic netCDF file (64-bit data), not HDF5: convert it (nccopy -k nc4)"},
      Known{"MATLAB 5.0 MAT-file", "is a MATLAB file of version 7 or older, not HDF5: save it again with -v7.3"},
      Known{"\x1f\x8b", "is compressed by gzip: unpack it first"},
      Known{"\x28\xb5\x2f\xfd", "is compressed by zstd: unpack it first"},
      Known{"BZh", "is compressed by bzip2: unpack it first"},
      Known{"\xfd"
            "7zXZ",
            "is compressed by xz: unpack it first"},
      Known{"PK\x03\x04", "is a zip archive (.npz?), not HDF5 or .npy: unpack it first"},
      Known{"\x0e\x03\x13\x01", "is an HDF4 file, not HDF5: convert it (h4toh5)"}};
  for (const Known& known : kKnown) {
    if (head.starts_with(known.start)) return known.text;
  }
  if (is_text(head)) return "is a text file, not HDF5 or .npy: convert it first (numpy.save of numpy.loadtxt)";
  return "is not HDF5 or .npy (no signature of either is in it): convert it first, or get the whole file";
}

}  // namespace

const std::vector<std::string>& file_formats() {
  static const std::vector<std::string> formats = {"hdf5", "netcdf", "matlab", "anndata",
                                                   "10x",  "loom",   "pandas", "npy"};
  return formats;
}

std::string file_format(const ReadFile& file, const std::string& wanted) {
  const std::vector<std::string>& known = file_formats();
  if (wanted != "auto" && std::find(known.begin(), known.end(), wanted) == known.end()) {
    std::string choices = "auto";
    for (const std::string& format : known) choices += ", " + format;
    throw Error(ExitCode::usage, "--format " + wanted + " is not known: use one of " + choices);
  }
  if (file.bytes() == 0) throw Error(ExitCode::input, file.path() + ": is empty (0 bytes): write it again");
  const std::string head = bytes_at(file, 0, 512);
  std::string found;
  if (head.starts_with(kNpy)) {
    found = "npy";
  } else if (has_hdf5_signature(file)) {
    found = "hdf5";
  } else {
    throw Error(ExitCode::input, file.path() + ": " + what_it_is(head));
  }
  if (wanted != "auto" && (wanted == "npy") != (found == "npy")) {
    throw Error(ExitCode::input, file.path() + ": is " + found + ", not " + wanted + ": leave out --format");
  }
  return found;
}

}  // namespace rowmill
