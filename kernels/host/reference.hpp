#pragma once
// The operations of kernels/ops.hpp as plain loops over long double that anyone can check by eye. For tests: the fast
// kernels are compared with these.
#include <cstdint>
#include <optional>
#include <vector>

#include "core/block.hpp"
#include "kernels/ops.hpp"

namespace rowmill::host {

/// Element (row, column) of the block as stored, without rounding; empty if it is missing.
std::optional<long double> reference_value(const Block& block, std::int64_t row, std::int64_t column);

struct ReferenceMoments {
  std::vector<std::int64_t> count, missing;
  std::vector<long double> sum, second, absolute;  ///< absolute: sum of |w|, the scale of rounding errors
  std::vector<double> min, max;
};
ReferenceMoments reference_moments(const Block& block, ColumnMap map);

/// The packed lower triangle of WᵀW. `scale`, if given, becomes the same sums of |w_i w_j|.
std::vector<long double> reference_cross_product(const Block& block, ColumnMap map,
                                                 std::vector<long double>* scale = nullptr);

std::vector<double> reference_nearest(const Block& block, const double* targets);

/// What inspect does.
void reference_inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact);

}  // namespace rowmill::host
