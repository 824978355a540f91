#pragma once
// Precisions of products: how large their errors can be, and which is the cheapest that meets a bound. Pure functions
// of fixed tables, so that bits do not depend on the day.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops.hpp"

namespace rowmill {

/// How a tensor core adds to its fp32 accumulator: `group` products and the accumulator are aligned to the greatest
/// exponent among them, cut below `extra_bits` bits past 24, added exactly, and the sum is cut to 24 bits.
struct TensorCore {
  int group = 0, extra_bits = 0;
};
TensorCore tensor_core(Precision precision, int compute_capability);

/// Bound on |fl(W)ᵢ fl(W)ⱼ - Wᵢ Wⱼ| / |Wᵢ Wⱼ|: both factors rounded. 0 where every stored value is exact in the
/// precision and working values are the stored ones.
double rounding_bound(Precision precision, const ProductModel& model);

/// Bound on the error of one chain of `rows` products, of the sum of their magnitudes.
double chain_bound(Precision precision, int compute_capability, std::int64_t rows);

/// Rows of a chain that can be chosen.
constexpr std::array<std::int64_t, 12> chain_ladder = {128, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 3072, 4096};

/// The longest chain of int8 products that int32 holds, a multiple of 16: 131056 · 2^14 < 2^31.
constexpr std::int64_t int8_chain_rows = 131056;

/// The chain with which the precision meets rtol: the longest on the ladder (fp32: slab_rows, int8: int8_chain_rows). 0
/// if there is none.
std::int64_t chain_rows_within(Precision precision, const ProductModel& model, double rtol);

/// The chain with which a precision's bound is least.
std::int64_t shortest_chain(Precision precision);

/// The greatest magnitudes of a column with which a precision neither overflows nor loses more than its bound to
/// underflow; 0 fits besides.
struct Range {
  double least = 0, most = 0;
};
Range column_range(Precision precision, const ProductModel& model);

/// Peak rates of a device, dense, in operations a second (a product and a sum are two), and bytes a second.
struct DeviceRates {
  double fp64, fp32, tf32, bf16, int8, memory, bus;
};
/// By the name of the device if it is in the table, else by compute capability.
DeviceRates device_rates(const std::string& device_name, int compute_capability);

/// Seconds that a row of `columns` values costs in XᵀX (one triangle), beside its way over the bus.
double product_seconds(const ProductChoice& choice, const DeviceRates& rates, std::int64_t columns);

/// auto on a device: fp64 for 64-bit types and where its time hides behind the bus (at most 0.8 of it); else the
/// cheapest of `offered` that meets rtol, exact ones first; else fp64. fp16 only where it is exact: columns that do not
/// fit its narrow range would be done again in fp64, slowly.
ProductChoice cheapest_product(const ProductModel& model, std::int64_t columns, double rtol,
                               const std::string& device_name, const std::vector<Precision>& offered);

/// All precisions, most exact first.
const std::vector<Precision>& all_precisions();

}  // namespace rowmill
