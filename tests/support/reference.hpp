#pragma once
// Plain long-double answers that anyone can check by eye.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/files.hpp"

namespace rowmill::test {

struct ColumnAnswer {
  std::int64_t count = 0, missing = 0;
  long double sum = 0, mean = 0, variance = 0, min = std::numeric_limits<long double>::infinity(),
              max = -std::numeric_limits<long double>::infinity();
  long double size = 0;  ///< sum of magnitudes
};

template <typename T>
std::vector<ColumnAnswer> column_answers(const Matrix<T>& x, int ddof) {
  std::vector<ColumnAnswer> answers(static_cast<std::size_t>(x.columns));
  for (std::int64_t j = 0; j < x.columns; ++j) {
    ColumnAnswer& a = answers[static_cast<std::size_t>(j)];
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const long double v = static_cast<long double>(x.at(i, j));
      if (std::isnan(v)) {
        ++a.missing;
        continue;
      }
      ++a.count;
      a.sum += v;
      a.size += std::abs(v);
      a.min = std::min(a.min, v);
      a.max = std::max(a.max, v);
    }
    a.mean = a.sum / static_cast<long double>(a.count);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const long double v = static_cast<long double>(x.at(i, j));
      if (!std::isnan(v)) a.variance += (v - a.mean) * (v - a.mean);
    }
    a.variance /= static_cast<long double>(a.count - ddof);
  }
  return answers;
}

/// XᵀX (centre = false), or the sums of products about the means.
template <typename T>
std::vector<long double> cross_products(const Matrix<T>& x, bool centre) {
  const auto columns = static_cast<std::size_t>(x.columns);
  std::vector<long double> mean(columns, 0), products(columns * columns, 0);
  for (std::int64_t i = 0; centre && i < x.rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      mean[j] += static_cast<long double>(x.at(i, static_cast<std::int64_t>(j))) / static_cast<long double>(x.rows);
    }
  }
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const long double v = static_cast<long double>(x.at(i, static_cast<std::int64_t>(j))) - mean[j];
      for (std::size_t k = 0; k < columns; ++k) {
        products[j * columns + k] += v * (static_cast<long double>(x.at(i, static_cast<std::int64_t>(k))) - mean[k]);
      }
    }
  }
  return products;
}

}  // namespace rowmill::test
