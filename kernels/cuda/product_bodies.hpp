#pragma once
// What the kernels of a product do with one element: bodies for host and device. No CUDA header.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/product_run.hpp"
#include "kernels/rounding.hpp"

namespace rowmill {

/// Where a value of a batch goes: the element of its (first) factor, and the elements from one copy to the next.
struct Placed {
  std::int64_t at = 0, copy = 0;
};

/// The sizes of a ProductPlan that kernels look at.
struct WorkShape {
  std::int64_t columns = 0, product_columns = 0, leading = 0, copies = 1, slab_rows = 1;
};
inline WorkShape work_shape(const ProductPlan& plan) {
  return {plan.columns, plan.product_columns, plan.leading, plan.copies, plan.slab_rows};
}

/// Row-major slabs: row of the batch, column.
ROWMILL_HD inline Placed place_in_rows(const WorkShape& shape, std::int64_t row, std::int64_t column) {
  const std::int64_t slab = row / shape.slab_rows, in_slab = row - slab * shape.slab_rows;
  const std::int64_t copy = shape.slab_rows * shape.leading;
  return {slab * shape.copies * copy + in_slab * shape.leading + column, copy};
}

/// int8: column-major slabs.
ROWMILL_HD inline Placed place_in_columns(const WorkShape& shape, std::int64_t row, std::int64_t column) {
  const std::int64_t slab = row / shape.slab_rows, in_slab = row - slab * shape.slab_rows;
  return {slab * shape.slab_rows * shape.leading + column * shape.slab_rows + in_slab, 0};
}

inline Placed place(const ProductPlan& plan, std::int64_t row, std::int64_t column) {
  const WorkShape shape = work_shape(plan);
  return plan.precision == Precision::int8 ? place_in_columns(shape, row, column) : place_in_rows(shape, row, column);
}

/// Rounds w to the precision and stores it.
template <Precision kPrecision>
ROWMILL_HD inline void store_factor(double w, std::byte* work, const Placed& placed) {
  if constexpr (kPrecision == Precision::fp64) {
    reinterpret_cast<double*>(work)[placed.at] = w;
  } else if constexpr (kPrecision == Precision::fp32) {
    reinterpret_cast<float*>(work)[placed.at] = static_cast<float>(w);
  } else if constexpr (kPrecision == Precision::tf32) {
    reinterpret_cast<float*>(work)[placed.at] = static_cast<float>(rounded_to_tf32(w));
  } else if constexpr (kPrecision == Precision::bf16) {
    reinterpret_cast<std::uint16_t*>(work)[placed.at] = bf16_bits(rounded_to_bf16(w));
  } else if constexpr (kPrecision == Precision::fp16) {
    reinterpret_cast<std::uint16_t*>(work)[placed.at] = half_bits(rounded_to_half(w));
  } else if constexpr (kPrecision == Precision::bf16x3) {
    const TwoBf16 parts = split_bf16(w);
    const std::uint16_t high = bf16_bits(parts.high), low = bf16_bits(parts.low);
    auto* const to = reinterpret_cast<std::uint16_t*>(work) + placed.at;
    to[0] = to[placed.copy] = to[3 * placed.copy] = low;
    to[high_copy * placed.copy] = high;
  } else {
    reinterpret_cast<std::int8_t*>(work)[placed.at] = static_cast<std::int8_t>(w);
  }
}

inline void store_factors(Precision precision, double w, std::byte* work, const Placed& placed) {
  switch (precision) {
    case Precision::fp64:
      return store_factor<Precision::fp64>(w, work, placed);
    case Precision::fp32:
      return store_factor<Precision::fp32>(w, work, placed);
    case Precision::tf32:
      return store_factor<Precision::tf32>(w, work, placed);
    case Precision::bf16:
      return store_factor<Precision::bf16>(w, work, placed);
    case Precision::fp16:
      return store_factor<Precision::fp16>(w, work, placed);
    case Precision::bf16x3:
      return store_factor<Precision::bf16x3>(w, work, placed);
    case Precision::int8:
      return store_factor<Precision::int8>(w, work, placed);
  }
}

/// Is a greatest magnitude, given by its bits, 0 or in the range?
ROWMILL_HD inline bool fits_range(std::uint64_t greatest_bits, const Range& range) {
  const auto greatest = same_bits<double>(greatest_bits);
  return greatest == 0 || (greatest >= range.least && greatest <= range.most);
}

/// Σ f_i f_j over the rows to Σ w_i w_j, where w = (f + offset - shift) scale. offset - shift is cut into its nearest
/// integer, for which all sums are integers and exact below 2^53, and a rest of at most a half: nothing cancels that
/// is much larger than the result.
ROWMILL_HD inline double offset_undone(const OffsetCall& call, double product, std::int64_t i, std::int64_t j) {
  const auto n = static_cast<double>(call.rows);
  const double add_i = call.offset - (call.map.shift == nullptr ? 0.0 : call.map.shift[i]);
  const double add_j = call.offset - (call.map.shift == nullptr ? 0.0 : call.map.shift[j]);
  const double whole_i = rint(add_i), whole_j = rint(add_j);
  const double rest_i = add_i - whole_i, rest_j = add_j - whole_j;
  const double sum_i = call.column_sums[i] + n * whole_i, sum_j = call.column_sums[j] + n * whole_j;
  // Σ (f_i + whole_i)(f_j + whole_j)
  const double whole = product + whole_j * call.column_sums[i] + whole_i * sum_j;
  const double w = whole + (rest_j * sum_i + rest_i * sum_j + n * rest_i * rest_j);
  const double scale = call.map.scale == nullptr ? 1.0 : call.map.scale[i] * call.map.scale[j];
  return w * scale;
}

}  // namespace rowmill
