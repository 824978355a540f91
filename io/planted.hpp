#pragma once
// The model behind generated data: what is planted, and the rows that follow from it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/generate.hpp"

namespace rowmill {

/// Immutable after construction; `fill_row` may be called from several threads with different scratch.
class PlantedModel {
 public:
  explicit PlantedModel(const GenerateOptions& options);

  /// Doubles of scratch that fill_row needs.
  std::size_t scratch_size() const { return static_cast<std::size_t>(2 * factor_pairs_); }
  /// Row `row` (columns doubles, rounded up to even, are written) before conversion to the stored type; NaN is missing.
  void fill_row(std::int64_t row, double* values, double* scratch) const;

  /// What the stored values have: mean (columns), standard deviation (columns), covariance (columns × columns).
  const std::vector<double>& mean() const { return mean_; }
  std::vector<double> standard_deviation() const;
  std::vector<double> covariance() const;
  double noise() const { return noise_; }

 private:
  std::int64_t columns_ = 0, column_pairs_ = 0, rank_ = 0, factor_pairs_ = 0;
  double noise_ = 0, rounding_variance_ = 0;
  std::uint64_t noise_key_ = 0, factor_key_ = 0, missing_key_ = 0;
  std::uint64_t missing_below_ = 0;  ///< of 2^32
  std::vector<double> mean_;
  std::vector<double> loadings_;  ///< rank × columns
};

/// Converts and stores `count` values in the given type: rounded to nearest, ties to even, integers and float16
/// clipped.
void encode_values(const double* values, std::int64_t count, ElementType type, std::byte* to);

}  // namespace rowmill
