#pragma once
// How a block's WᵀW is cut into library calls: batches of rows, slabs of them, row panels of the triangle. Fixed by
// rows, columns, type and ProductChoice alone, since it decides bits. No CUDA header.
//
// A working matrix is row-major, rows × leading elements, its columns padded with zeros to 16 bytes; that is a
// column-major `columns × rows` matrix A with the leading dimension `leading`, and WᵀW = A Aᵀ. Rows of the last slab
// are padded with zeros, and slabs are as long as those of the longest block, so that all are calls of one shape. int8
// products want both operands with rows running fastest: there a slab is column-major, slab_rows × padded columns, with
// a column of ones behind the last, which brings the sums of columns that undo the offset.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/blas_calls.hpp"
#include "kernels/ops.hpp"

namespace rowmill {

/// Copies of a slab's rows that a working matrix holds for each precision: one, but for bf16x3 the four L, L, H, L, of
/// which rows [0, 3) times rows [1, 4) are LᵀL + LᵀH + HᵀL, and the third by itself is H.
constexpr std::int64_t high_copy = 2;

/// A run of columns i of the triangle, with all columns j <= i. Its sums are row-major, lines × leading, one line for
/// each i; lines and leading are multiples of 16 bytes' elements (what lies behind count and i + 1 is of no use).
struct Panel {
  std::int64_t first = 0, count = 0;
  std::int64_t lines = 0, leading = 0;
  std::int64_t end() const { return first + count; }
  std::int64_t elements() const { return lines * leading; }
};

/// Bytes of scratch that a plan takes, unless a slab of 16 rows or a panel of 16 columns is more (tests make them
/// small), and the rows of the longest block. Fixed: they decide bits.
struct ProductLimits {
  std::int64_t work = 128 << 20;  ///< a batch's working matrices
  std::int64_t sums = 32 << 20;   ///< a call's sums: they are to stay in a GPU's cache
  std::int64_t rows = 0;          ///< shorter blocks are done by calls of the longest one's shapes; 0: none is longer
};

struct ProductPlan {
  ProductPlan(std::int64_t rows, std::int64_t columns, const ProductChoice& choice, const ProductLimits& limits = {});

  Precision precision;
  Factor factor;
  ProductLimits limits;
  std::int64_t rows, columns;
  std::int64_t product_columns;  ///< columns of the working matrix that are multiplied: int8 has one more
  std::int64_t leading;          ///< product_columns, padded
  std::int64_t copies;           ///< of a slab's rows in its working matrix
  std::int64_t slab_rows;        ///< rows of a slab, padding included
  std::int64_t slabs;            ///< of the block
  std::int64_t longest_slabs;    ///< of the longest block
  std::int64_t batch_slabs;      ///< converted at once; the last batch may have fewer
  std::vector<Panel> panels;

  std::int64_t batches() const { return (slabs + batch_slabs - 1) / batch_slabs; }
  std::int64_t slab_elements() const { return copies * slab_rows * leading; }
  /// Slabs of a panel that are multiplied by one call and then added in order.
  std::int64_t group_slabs(const Panel& panel) const;
  /// Slabs of the call that multiplies so many of a batch: as few as a call of the longest block has. What lies in the
  /// slabs behind is multiplied too, and not added.
  std::int64_t call_slabs(const Panel& panel, std::int64_t wanted) const;

  std::int64_t work_bytes() const { return batch_slabs * slab_elements() * bytes_of(factor); }
  std::int64_t sums_bytes() const;  ///< of the sums of the panel that has most
};

/// Where the parts of scratch lie; offsets are multiples of 256.
struct ProductScratch {
  std::int64_t work = 0, sums = 0;
  std::int64_t greatest = 0;     ///< columns × uint64: the bits of a column's greatest magnitude
  std::int64_t column_sums = 0;  ///< product_columns doubles (int8)
  std::int64_t flag = 0;         ///< int32: not 0 if the block has to be done in fp64
  std::int64_t total = 0;
};
/// Fits any block of the width, whatever its rows and chains.
ProductScratch product_scratch(std::int64_t columns, Precision precision, const ProductLimits& limits = {});

bool offers_product(Precision precision, ElementType type);

}  // namespace rowmill
