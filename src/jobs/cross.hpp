#pragma once
// The product WᵀW of a job's working values: what gram and cov share.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "jobs/job.hpp"
#include "jobs/moments.hpp"

namespace rowmill {

inline std::int64_t triangle(std::int64_t columns) {
  return columns * (columns + 1) / 2;
}

/// Adds the binned product and the scratch of products of sparse rows, entry by entry.
inline void add_sparse_cross(PartialLayout& layout, const JobInput& input, const JobOptions& options, const Ops& ops) {
  layout.add("product", ElementKind::binned, Combine::sum, triangle(input.columns));
  const std::int64_t rows = std::min(options.block_rows, input.rows);
  layout.add_scratch_bytes("sparse_scratch",
                           static_cast<std::int64_t>(ops.sparse_product_scratch(rows, input.columns)));
}

/// Of the stored values: there is no shift.
inline void accumulate_sparse_cross(const Block& block, PartialView lane, Ops& ops, Queue queue) {
  ops.add_sparse_product(block, lane.raw("sparse_scratch"), lane.binned("product"), queue);
}

/// Adds the binned product, its block scratch and the kernel's scratch.
inline void add_cross(PartialLayout& layout, const JobInput& input, Precision precision, const Ops& ops) {
  layout.add("product", ElementKind::binned, Combine::sum, triangle(input.columns));
  layout.add_scratch("block_product", triangle(input.columns));
  layout.add_scratch_bytes("cross_scratch",
                           static_cast<std::int64_t>(ops.cross_product_scratch(input.type, input.columns, precision)));
}

inline void accumulate_cross(const Block& block, ColumnMap map, Precision precision, PartialView lane, Ops& ops,
                             Queue queue) {
  ops.cross_product(block, map, precision, lane.raw("cross_scratch"), lane.f64("block_product"), queue);
  ops.add_binned(lane.binned("product"), lane.f64("block_product"), queue);
}

/// The error of a precision measured on (at most 1024 rows of) a block against fp64: the greatest |difference| /
/// sqrt(p_ii p_jj). Zero for fp64 itself.
inline double measure_error(const Block& block, ColumnMap map, Precision precision, const JobInput& input,
                            PartialView lane, Ops& ops, Queue queue) {
  if (precision == Precision::fp64) return 0;
  Block few = block;
  if (auto* dense = std::get_if<DenseRows>(&few.x))
    *dense = dense->middle_rows(0, std::min<std::int64_t>(dense->rows, 1024));
  few.range.count = row_count(few.x);
  if (few.missing) few.missing = few.missing->middle_rows(0, few.range.count);
  const auto product = [&](Precision how) {
    DeviceBuffer scratch(ops.backend(), ops.cross_product_scratch(input.type, input.columns, how), queue);
    ops.cross_product(few, map, how, scratch.data(), lane.f64("block_product"), queue);
    return fetch(lane.f64("block_product"), triangle(input.columns), ops, queue);
  };
  const std::vector<double> fast = product(precision), exact = product(Precision::fp64);
  double worst = 0;
  for (std::int64_t i = 0; i < input.columns; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const auto at = [](std::int64_t r, std::int64_t c) { return static_cast<std::size_t>(triangle(r) + c); };
      const double size = std::sqrt(exact[at(i, i)]) * std::sqrt(exact[at(j, j)]);
      const double error = std::abs(fast[at(i, j)] - exact[at(i, j)]) / size;
      if (error > worst) worst = error;  // NaN (zero or infinite columns) does not count
    }
  }
  return worst;
}

/// The a-priori bound of a job's products, of the scale sqrt(p_ii p_jj); `shifted`: working values are not the stored
/// ones.
inline double cross_bound(const JobInput& input, const JobOptions& options, bool shifted) {
  return product_bound({options.precision, options.chain_rows}, {input.type, shifted, options.compute_capability},
                       options.block_rows);
}

}  // namespace rowmill
