#pragma once
// Files for tests: a folder that goes away, .npy and HDF5 files of given values, results read back.
#include <hdf5.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace rowmill::test {

/// A folder of its own for a test; removed with everything in it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rowmill-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// A matrix in memory, row-major.
template <typename T>
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<T> values;

  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  T& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  const T& at(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * columns + j)]; }
};

template <typename T>
T byte_swapped(T value) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  for (std::size_t k = 0; k < sizeof(T) / 2; ++k) std::swap(bytes[k], bytes[sizeof(T) - 1 - k]);
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <typename T>
std::string npy_type() {
  const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
  return std::string(1, kind) + std::to_string(sizeof(T));
}

/// `type` overrides the element's type name, as in "f2" for float16 given as uint16 bits.
template <typename T>
void write_npy(const std::string& path, const Matrix<T>& matrix, bool big_endian = false, std::string type = {}) {
  if (type.empty()) type = npy_type<T>();
  std::string header = "{'descr': '" +
                       std::string(sizeof(T) == 1 ? "|"
                                   : big_endian   ? ">"
                                                  : "<") +
                       type + "', 'fortran_order': False, 'shape': (" + std::to_string(matrix.rows) + ", " +
                       std::to_string(matrix.columns) + "), }";
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\x00' << static_cast<char>(header.size() & 0xff)
       << static_cast<char>(header.size() >> 8) << header;
  for (const T value : matrix.values) {
    const T stored = big_endian ? byte_swapped(value) : value;
    file.write(reinterpret_cast<const char*>(&stored), sizeof stored);
  }
}

template <typename T>
hid_t h5_type() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::int8_t>) return H5T_NATIVE_INT8;
  if constexpr (std::is_same_v<T, std::int16_t>) return H5T_NATIVE_INT16;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return H5T_NATIVE_UINT16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
}

struct H5Storage {
  std::int64_t chunk_rows = 0, chunk_columns = 0;  ///< 0: contiguous
  int gzip = 0;
  bool big_endian = false;
  bool n_bit = false;
};

/// Writes /X (or `name`) of an HDF5 file.
template <typename T>
void write_h5(const std::string& path, const Matrix<T>& matrix, const H5Storage& storage = {},
              const char* name = "/X") {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t size[2] = {static_cast<hsize_t>(matrix.rows), static_cast<hsize_t>(matrix.columns)};
  const hid_t space = H5Screate_simple(2, size, nullptr), properties = H5Pcreate(H5P_DATASET_CREATE);
  if (storage.chunk_rows > 0) {
    const hsize_t chunk[2] = {static_cast<hsize_t>(storage.chunk_rows), static_cast<hsize_t>(storage.chunk_columns)};
    H5Pset_chunk(properties, 2, chunk);
    if (storage.n_bit) H5Pset_nbit(properties);
    if (storage.gzip > 0) H5Pset_deflate(properties, static_cast<unsigned>(storage.gzip));
  }
  const hid_t type = H5Tcopy(h5_type<T>());
  if (storage.big_endian) H5Tset_order(type, H5T_ORDER_BE);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  H5Dwrite(dataset, h5_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, matrix.values.data());
  H5Dclose(dataset);
  H5Tclose(type);
  H5Pclose(properties);
  H5Sclose(space);
  H5Fclose(file);
}

/// Writes the nonzero values as AnnData's sparse group /X: by rows (CSR), or by columns (CSC).
template <typename T>
void write_sparse(const std::string& path, const Matrix<T>& matrix, bool by_columns = false) {
  std::vector<std::int64_t> pointers = {0}, indices;
  std::vector<T> values;
  const std::int64_t lines = by_columns ? matrix.columns : matrix.rows;
  const std::int64_t length = by_columns ? matrix.rows : matrix.columns;
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t k = 0; k < length; ++k) {
      const T value = by_columns ? matrix.at(k, line) : matrix.at(line, k);
      if (value == T{}) continue;
      indices.push_back(k);
      values.push_back(value);
    }
    pointers.push_back(static_cast<std::int64_t>(values.size()));
  }
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "X", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const auto write_list = [&](const char* name, hid_t type, std::size_t count, const void* data) {
    const hsize_t size = count;
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    const hid_t list = H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(list, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(list);
    H5Sclose(space);
  };
  write_list("indptr", H5T_NATIVE_INT64, pointers.size(), pointers.data());
  write_list("indices", H5T_NATIVE_INT64, indices.size(), indices.data());
  write_list("data", h5_type<T>(), values.size(), values.data());
  const auto write_attribute = [&](const char* name, hid_t type, hid_t space, const void* data) {
    const hid_t attribute = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, data);
    H5Aclose(attribute);
    H5Sclose(space);
  };
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 10);
  write_attribute("encoding-type", text, H5Screate(H5S_SCALAR), by_columns ? "csc_matrix" : "csr_matrix");
  H5Tclose(text);
  const hsize_t two = 2;
  const std::int64_t shape[2] = {matrix.rows, matrix.columns};
  write_attribute("shape", H5T_NATIVE_INT64, H5Screate_simple(1, &two, nullptr), shape);
  H5Gclose(group);
  H5Fclose(file);
}

/// A data set of a result file as doubles; empty if it is not there.
inline std::vector<double> read_result(const std::string& path, const std::string& name) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return {};
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  std::vector<double> values;
  if (dataset >= 0) {
    const hid_t space = H5Dget_space(dataset);
    values.resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(dataset);
  }
  H5Fclose(file);
  return values;
}

/// A root attribute that is a string; empty if it is not there.
inline std::string read_attribute(const std::string& path, const std::string& name) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return {};
  std::string text;
  const hid_t attribute = H5Aopen(file, name.c_str(), H5P_DEFAULT);
  if (attribute >= 0) {
    const hid_t type = H5Aget_type(attribute);
    if (H5Tis_variable_str(type) > 0) {
      char* value = nullptr;
      if (H5Aread(attribute, type, &value) >= 0 && value != nullptr) text = value;
      free(value);
    } else {
      text.resize(H5Tget_size(type));
      H5Aread(attribute, type, text.data());
    }
    H5Tclose(type);
    H5Aclose(attribute);
  }
  H5Fclose(file);
  return text;
}

/// A root attribute that is a number; NaN if it is not there.
inline double read_number_attribute(const std::string& path, const std::string& name) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  double value = std::numeric_limits<double>::quiet_NaN();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return value;
  const hid_t attribute = H5Aopen(file, name.c_str(), H5P_DEFAULT);
  if (attribute >= 0) {
    if (H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) < 0) value = std::numeric_limits<double>::quiet_NaN();
    H5Aclose(attribute);
  }
  H5Fclose(file);
  return value;
}

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace rowmill::test
