#pragma once
// The few calls with which we write HDF5 files of our own making, checked. Not thread safe, as HDF5 is not.
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace rowmill {

/// Owns an HDF5 identifier of any kind.
class H5Handle {
 public:
  H5Handle() = default;
  explicit H5Handle(hid_t id) : id_(id) {}
  H5Handle(H5Handle&& other) noexcept { swap(other); }
  H5Handle& operator=(H5Handle&& other) noexcept {
    swap(other);
    return *this;
  }
  ~H5Handle();

  hid_t get() const { return id_; }
  void swap(H5Handle& other) noexcept { std::swap(id_, other.id_); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

/// While it lives HDF5 prints nothing on stderr.
class H5Quiet {
 public:
  H5Quiet();
  H5Quiet(const H5Quiet&) = delete;
  H5Quiet& operator=(const H5Quiet&) = delete;
  ~H5Quiet();

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// Throws Error(failed) "cannot write WHAT: reason of HDF5" for a negative result.
void h5_check(std::int64_t result, const std::string& what);
H5Handle h5_own(hid_t id, const std::string& what);

/// Property lists under which equal contents give equal bytes (no time stamps).
H5Handle h5_file_creation();
H5Handle h5_dataset_creation();

/// Scalar attributes: strings as UTF-8 of variable length, the one kind that h5py, MATLAB and R all read as text (and
/// that may be longer than 64 KiB); numbers as int64 or float64.
void h5_write_attribute(hid_t object, const std::string& name, const AttributeValue& value);

/// A data set of float64 in native order, contiguous. Shape {} is a scalar. Folders in the name are made.
void h5_write_doubles(hid_t file, const std::string& name, const std::vector<std::int64_t>& shape,
                      std::span<const double> values);

/// A data set of UTF-8 strings of variable length.
void h5_write_strings(hid_t file, const std::string& name, const std::vector<std::string>& values);

/// An HDF5 file that exists in memory only.
class H5MemoryFile {
 public:
  H5MemoryFile();
  hid_t id() const { return file_.get(); }
  /// The file's bytes as they would lie on disk; valid until the next call on this file.
  std::span<const std::byte> bytes();

 private:
  H5Handle access_, file_;
};

}  // namespace rowmill
