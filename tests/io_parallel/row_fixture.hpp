#pragma once
// What the tests of the row writer share: a folder of their own, values known from row and column, reading back.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/block.hpp"
#include "io/h5_write.hpp"

namespace rowmill::testing {

/// Exact in float32; no two of a small file are equal.
inline double value_at(std::int64_t row, std::int64_t column) {
  return static_cast<double>(row) + static_cast<double>(column) / 128 - 1000;
}

template <typename T>
std::vector<T> values_of(RowRange rows, std::int64_t width) {
  std::vector<T> values;
  for (std::int64_t row = rows.first; row < rows.end(); ++row) {
    for (std::int64_t column = 0; column < width; ++column) values.push_back(static_cast<T>(value_at(row, column)));
  }
  return values;
}

/// The data set as float64; sets `rows`, `columns` and `bytes` of a stored element.
struct ReadBack {
  ReadBack(const std::string& path, const std::string& name) {
    const H5Handle file = h5_own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), path);
    const H5Handle dataset = h5_own(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), name);
    const H5Handle space = h5_own(H5Dget_space(dataset.get()), name);
    const H5Handle type = h5_own(H5Dget_type(dataset.get()), name);
    hsize_t extent[2] = {0, 0};
    if (H5Sget_simple_extent_ndims(space.get()) != 2) throw std::logic_error("not two axes");
    H5Sget_simple_extent_dims(space.get(), extent, nullptr);
    rows = static_cast<std::int64_t>(extent[0]);
    columns = static_cast<std::int64_t>(extent[1]);
    bytes = static_cast<int>(H5Tget_size(type.get()));
    values.resize(static_cast<std::size_t>(rows * columns), -1);
    if (!values.empty()) {
      h5_check(H5Dread(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
    }
  }
  std::int64_t rows = 0, columns = 0;
  int bytes = 0;
  std::vector<double> values;
};

inline void expect_rows(const std::string& path, const std::string& name, std::int64_t rows, std::int64_t width,
                        int bytes) {
  const ReadBack back(path, name);
  EXPECT_EQ(back.rows, rows);
  EXPECT_EQ(back.columns, width);
  EXPECT_EQ(back.bytes, bytes);
  EXPECT_TRUE(back.values == values_of<double>({0, rows}, width));
}

inline std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

}  // namespace rowmill::testing
