#pragma once
// The list of operations. Views in, queue last; no allocation, no synchronisation: a call returns when the work is
// queued. Buffers are device memory of the backend that the Ops was made for, and must live until the work is done.
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/backend.hpp"
#include "core/binned.hpp"
#include "core/block.hpp"

namespace rowmill {

/// Precision of products inside a block. Sums across slabs and blocks are fp64 or wider in each.
///   fp64, fp32  factors and chains in that type
///   tf32, bf16, fp16  factors rounded to that type, chains in the fp32 of tensor cores, which truncate
///   bf16x3      factors as the sum of two bf16 H + L; LᵀL + LᵀH + HᵀL in one chain, HᵀH in another (not of bytes)
///   int8        values of i8 and u8 as they are, chains in int32: exact
/// Hosts offer the first two.
enum class Precision : std::uint8_t { fp64, fp32, tf32, bf16, fp16, bf16x3, int8 };
std::string name_of(Precision precision);
std::optional<Precision> parse_precision(const std::string& name);

/// Rows of one fp32 accumulation chain: the a-priori bound (slab_rows + 3) 2^-24 = 2.31e-5 is below the default --rtol.
constexpr std::int64_t slab_rows = 384;
constexpr double fp32_product_bound = static_cast<double>(slab_rows + 3) / 16777216.0;

/// What the error of a product depends on besides its precision and rows.
struct ProductModel {
  ElementType type;
  bool shifted = false;        ///< working values may differ from stored ones (a ColumnMap is given)
  int compute_capability = 0;  ///< Ops::compute_capability
};

/// A precision, and the rows of its accumulation chains; both decide bits.
struct ProductChoice {
  Precision precision = Precision::fp64;
  std::int64_t chain_rows = slab_rows;
};

/// The a-priori bound on a block's |P - WᵀW|_ij, of the scale sqrt(P_ii P_jj): the rounding of factors, the chains, and
/// block_rows sums in fp64 (see precision.hpp).
double product_bound(const ProductChoice& choice, const ProductModel& model, std::int64_t block_rows);

/// The blocks that a queue's operations will see.
struct BlockShape {
  ElementType type;
  std::int64_t rows = 0, columns = 0;   ///< of the largest block
  std::optional<Precision> product;     ///< that cross_product will be asked for, if it will
  std::int64_t chain_rows = slab_rows;  ///< of it (ProductChoice): at most so many rows are added in one chain
};

/// Per column: the working value is (x - shift) * scale, computed in fp64. Null pointers mean 0 and 1.
struct ColumnMap {
  const double* shift = nullptr;
  const double* scale = nullptr;
};

/// Moments of one block, `columns` entries each, overwritten. sum and second are of the working values (x - shift) *
/// scale that are not missing; min and max of the stored values that are not missing (+inf, -inf if there are none).
struct ColumnMoments {
  std::int64_t* count = nullptr;  ///< values that are not missing
  std::int64_t* missing = nullptr;
  double* sum = nullptr;
  double* second = nullptr;  ///< sum of squares of the working values
  double* min = nullptr;
  double* max = nullptr;
};

constexpr std::int64_t nothing_missing = std::numeric_limits<std::int64_t>::max();

class Ops {
 public:
  virtual ~Ops() = default;
  virtual Backend& backend() = 0;

  /// "Intel Xeon …, rowmill kernels AVX3", "NVIDIA H200": what the bits of results depend on besides the build.
  virtual std::string device_name() const = 0;

  /// 90 for CUDA's 9.0; 0 on hosts.
  virtual int compute_capability() const { return 0; }

  /// Can cross_product work in this precision on this stored type?
  virtual bool offers(Precision precision, ElementType type) const = 0;

  /// Once for each queue before its first operation, while nothing is summed yet: takes the memory that operations need
  /// besides their arguments and runs every kernel and library call of these shapes once, so that nothing is loaded or
  /// allocated later. Waits for the queue. The only function here that allocates.
  virtual void prepare(const BlockShape& shape, Queue queue) = 0;

  /// Looks a block over. *first_missing = min(*first_missing, row * columns + column) over missing values (NaN in
  /// floating types, or set in the mask), row counted from the source's row 0. *inexact = max(*inexact, 1) if an
  /// integer has no exact double.
  virtual void inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact, Queue queue) = 0;

  /// The first half of inspect() for a block whose cross_product is `packed`: the diagonal is NaN where a column has a
  /// missing value (and almost never else), and only then is the block looked over.
  virtual void inspect_product(const Block& block, const double* packed, std::int64_t* first_missing, Queue queue) = 0;

  virtual void column_moments(const Block& block, ColumnMap map, ColumnMoments out, Queue queue) = 0;

  /// For each column the finite stored value that is nearest to target (the smaller of two), or 0 if there is none.
  virtual void nearest_values(const Block& block, const double* targets, double* out, Queue queue) = 0;

  /// Bytes of scratch that cross_product needs for blocks of this type and width.
  virtual std::size_t cross_product_scratch(ElementType type, std::int64_t columns, Precision precision) const = 0;

  /// The lower triangle of WᵀW, W the block's working values (x - shift) * scale, packed by rows: entry (i, j), j <= i,
  /// at i (i + 1) / 2 + j; fp64, overwritten. Missing values are NaN in W. In fp32, W is rounded to float32, products
  /// run in slabs of at most `slab_rows` rows that are added in fp64, and a slab in which a column's greatest magnitude
  /// is not 0 nor in [2^-50, 2^50] is done in fp64. Devices run every precision but fp64 in slabs of at most
  /// BlockShape::chain_rows rows, and do a whole block again in fp64 if a column's greatest magnitude does not fit.
  virtual void cross_product(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed,
                             Queue queue) = 0;

  /// Can this device multiply sparse rows entry by entry? Then gram and cov need no triangle of a block.
  virtual bool multiplies_entries() const { return false; }
  /// Bytes of scratch that add_sparse_product needs for blocks of at most so many rows.
  virtual std::size_t sparse_product_scratch(std::int64_t /*rows*/, std::int64_t /*columns*/) const { return 0; }
  /// acc += XᵀX of sparse rows as they are stored, packed as cross_product's. Products and their sums over the block
  /// are fp64, entry by entry: the bound is product_bound's of fp64. Each sum over the block is rounded to a double and
  /// added order-free. What a row does not hold counts as 0 also beside infinities and NaN, as in dense rows. Throws
  /// std::logic_error where multiplies_entries() is false.
  virtual void add_sparse_product(const Block& /*block*/, void* /*scratch*/, BinnedView /*acc*/, Queue /*queue*/) {
    throw std::logic_error("this device does not multiply sparse rows entry by entry");
  }

  /// acc[i] += values[i], order-free.
  virtual void add_binned(BinnedView acc, const double* values, Queue queue) = 0;
  /// acc += other, element by element.
  virtual void merge_binned(BinnedView acc, BinnedView other, Queue queue) = 0;
  /// Brings every accumulator to the top position tops[i] >= acc.top[i], dropping digits below; acc.top becomes tops.
  virtual void align_binned(BinnedView acc, const std::int8_t* tops, Queue queue) = 0;

  virtual void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) = 0;
  virtual void keep_min(double* acc, const double* values, std::int64_t count, Queue queue) = 0;
  virtual void keep_max(double* acc, const double* values, std::int64_t count, Queue queue) = 0;
  virtual void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) = 0;
  virtual void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) = 0;
};

/// Host kernels; `backend` is a host backend and outlives the Ops.
std::unique_ptr<Ops> make_host_ops(Backend& backend);

/// "Intel Xeon …, rowmill kernels AVX3": what the bits of host results depend on besides the build.
std::string host_device_name();

}  // namespace rowmill
