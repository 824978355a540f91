#pragma once
// Host bodies of the operations in kernels/ops.hpp: run in the calling thread, allocate nothing, keep no state. They
// may be called by several threads at once, on different outputs.
#include <cstddef>
#include <cstdint>

#include "core/binned.hpp"
#include "core/block.hpp"
#include "kernels/ops.hpp"

namespace rowmill::host {

void inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact);
void inspect_product(const Block& block, const double* packed, std::int64_t* first_missing);
void column_moments(const Block& block, ColumnMap map, ColumnMoments out);
void nearest_values(const Block& block, const double* targets, double* out);

std::size_t cross_product_scratch(std::int64_t columns, Precision precision);
void cross_product(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed);

std::size_t sparse_product_scratch(std::int64_t rows, std::int64_t columns);
void add_sparse_product(const Block& block, void* scratch, BinnedView acc);

/// column_moments of sparse rows without a mask, entry by entry.
void sparse_moments(const Block& block, ColumnMap map, ColumnMoments out);

void add_binned(BinnedView acc, const double* values);
/// acc[first + i] += values[i] for `count` values.
void add_binned(BinnedView acc, std::int64_t first, const double* values, std::int64_t count);
void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count);
void keep_min(double* acc, const double* values, std::int64_t count);
void keep_max(double* acc, const double* values, std::int64_t count);
void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count);
void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count);

}  // namespace rowmill::host
