#pragma once
// The walk over a ProductPlan: which kernels and library calls make a block's product, in which order. No CUDA header:
// tests run it with doubles of both.
#include <cstdint>

#include "kernels/cuda/blas_calls.hpp"
#include "kernels/cuda/product_plan.hpp"
#include "kernels/precision.hpp"

namespace rowmill {

/// Rows of a block to be made into a batch's working matrices.
struct ConvertCall {
  const Block* block = nullptr;
  ColumnMap map;
  const ProductPlan* plan = nullptr;
  std::int64_t first_row = 0, rows = 0;  ///< of the block
  std::int64_t slabs = 0;                ///< slabs · slab_rows >= rows; what lies behind is zero
  std::byte* work = nullptr;
  std::uint64_t* greatest = nullptr;  ///< maxima are taken of what is there; null: none are wanted
  std::int32_t* flag = nullptr;       ///< int8: becomes 1 where a value is missing
};

/// Sums of a panel, slab after slab, into the packed triangle.
struct FoldCall {
  const ProductPlan* plan = nullptr;
  Panel panel;
  const std::byte* sums = nullptr;
  std::int64_t slabs = 0;
  bool first = false;  ///< overwrite; else add
  double* packed = nullptr;
  double* column_sums = nullptr;  ///< int8: where the line of the column of ones goes
};

/// int8: from products and sums of offset values to those of working values.
struct OffsetCall {
  ColumnMap map;
  std::int64_t rows = 0, columns = 0;
  double offset = 0;  ///< stored value = factor + offset
  const double* column_sums = nullptr;
  double* packed = nullptr;
};

/// The kernels beside the library calls, in the order of one queue.
class ProductKernels {
 public:
  virtual ~ProductKernels() = default;
  virtual void clear(void* to, std::size_t bytes) = 0;
  virtual void convert(const ConvertCall& call) = 0;
  virtual void fold(const FoldCall& call) = 0;
  virtual void undo_offset(const OffsetCall& call) = 0;
  /// *flag = 1 if a column's greatest magnitude is neither 0 nor in the range.
  virtual void check(const std::uint64_t* greatest, std::int64_t columns, Range range, std::int32_t* flag) = 0;
  /// If *flag is not 0: the whole product in fp64, overwritten.
  virtual void redo(const Block& block, ColumnMap map, const std::int32_t* flag, double* packed) = 0;
};

/// Queues the product of a block (see Ops::cross_product). `scratch` is product_scratch(…).total bytes, 256-byte
/// aligned. Tests make the limits small.
void run_product(const Block& block, ColumnMap map, const ProductChoice& choice, int compute_capability,
                 std::byte* scratch, double* packed, ProductKernels& kernels, BlasCalls& blas,
                 const ProductLimits& limits = {});

/// Makes each library call that a block of at most limits.rows rows makes, of whatever lies in scratch: libraries
/// choose, load and set up their kernels by shape.
void call_all_shapes(ElementType type, std::int64_t columns, const ProductChoice& choice, std::byte* scratch,
                     BlasCalls& blas, const ProductLimits& limits);

}  // namespace rowmill
