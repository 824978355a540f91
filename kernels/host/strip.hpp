#pragma once
// What column_moments keeps of a strip of 16 columns. Lanes are columns.
#include <algorithm>
#include <cstdint>
#include <limits>

namespace rowmill::host {

constexpr std::int64_t strip = 16;

/// Sums over rows; `missing` counts in doubles so that it adds like the others.
struct StripSums {
  double sum[strip] = {}, second[strip] = {}, missing[strip] = {}, min[strip], max[strip];
  std::int64_t rows = 0;
  bool any_missing = false;  ///< else `missing` is zeros

  StripSums() {
    std::fill_n(min, strip, std::numeric_limits<double>::infinity());
    std::fill_n(max, strip, -std::numeric_limits<double>::infinity());
  }
};

struct StripMap {
  double shift[strip], scale[strip];
  bool scaled;
};

}  // namespace rowmill::host
