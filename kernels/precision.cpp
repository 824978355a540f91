#include "kernels/precision.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rowmill {

namespace {

constexpr std::array<std::pair<Precision, const char*>, 7> names = {{{Precision::fp64, "fp64"},
                                                                     {Precision::fp32, "fp32"},
                                                                     {Precision::tf32, "tf32"},
                                                                     {Precision::bf16, "bf16"},
                                                                     {Precision::fp16, "fp16"},
                                                                     {Precision::bf16x3, "bf16x3"},
                                                                     {Precision::int8, "int8"}}};

bool is_byte(DType type) {
  return type == DType::i8 || type == DType::u8;
}

/// Is every stored value one of the precision's factors?
bool holds(Precision precision, DType type) {
  switch (precision) {
    case Precision::fp64:
      return type != DType::i64 && type != DType::u64;
    case Precision::fp32:
      return fits_float32(type);
    case Precision::tf32:
      return type == DType::f16 || type == DType::bf16 || is_byte(type);
    case Precision::bf16:
      return type == DType::bf16 || is_byte(type);
    case Precision::fp16:
      return type == DType::f16 || is_byte(type);
    case Precision::bf16x3:  // 16 bits of significand, and as many exponents as float32
      return size_of(type) <= 2;
    case Precision::int8:
      return is_byte(type);
  }
  return false;
}

/// The least of a column's greatest magnitude with which halves may be rounded.
constexpr double least_half_column = 0x1p-3;

/// Values below 2^-14 are rounded to multiples of 2^-24: at most sqrt(rows) 2^-25 of a column whose norm is at least
/// its greatest magnitude; twice, for two factors.
double half_underflow_bound(std::int64_t rows) {
  return 2 * std::sqrt(static_cast<double>(rows)) * 0x1p-25 / least_half_column;
}

/// 2 u + u² for factors rounded to nearest with unit roundoff u.
constexpr double two_factors(double unit) {
  return 2 * unit + unit * unit;
}

}  // namespace

std::string name_of(Precision precision) {
  for (const auto& [value, name] : names) {
    if (value == precision) return name;
  }
  return "?";
}

std::optional<Precision> parse_precision(const std::string& name) {
  for (const auto& [value, known] : names) {
    if (name == known) return value;
  }
  return std::nullopt;
}

const std::vector<Precision>& all_precisions() {
  static const std::vector<Precision> all = {Precision::fp64, Precision::int8, Precision::fp32, Precision::bf16x3,
                                             Precision::fp16, Precision::tf32, Precision::bf16};
  return all;
}

// Khattak and Mikaitis, Accurate Models of NVIDIA Tensor Cores (arXiv:2512.07004), and the parameters of their models
// (github.com/north-numerical-computing/MATLAB-tensor-core, models/A100TC.m, AdaTC.m, H200TC.m, B200TC.m): A100 and Ada
// add groups of 8 (tf32: 4) with one extra bit, H200 and B200 groups of 16 (tf32: 8) with two. What is not known is
// taken to be like A100.
TensorCore tensor_core(Precision precision, int compute_capability) {
  const bool newer = compute_capability == 90 || compute_capability == 100;
  const TensorCore core = newer ? TensorCore{16, 2} : TensorCore{8, 1};
  return precision == Precision::tf32 ? TensorCore{core.group / 2, core.extra_bits} : core;
}

double rounding_bound(Precision precision, const ProductModel& model) {
  if (precision == Precision::fp64 || precision == Precision::int8) return 0;  // product_bound counts fp64's own
  if (!model.shifted && holds(precision, model.type.dtype)) return 0;
  switch (precision) {
    case Precision::fp32:
      return two_factors(0x1p-24);
    case Precision::tf32:
    case Precision::fp16:  // 11 bits
      return two_factors(0x1p-11);
    case Precision::bf16:  // 8 bits
      return two_factors(0x1p-8);
    case Precision::bf16x3:
      // H leaves |w - H| <= 2^(e-8) of |w| >= 2^e; L rounds what is below that to 8 bits: 2^(e-17) at most is lost
      return two_factors(0x1p-17);
    default:
      return 0;
  }
}

double chain_bound(Precision precision, int compute_capability, std::int64_t rows) {
  const auto n = static_cast<double>(rows);
  switch (precision) {
    case Precision::fp64:
    case Precision::int8:
      return 0;
    case Precision::fp32:  // n - 1 sums and n products, rounded to nearest and in any order
      return (n + 1) * 0x1p-24;
    default:
      break;
  }
  // A group's addends lose less than 2^-extra_bits ulp each where they are aligned, and the sum less than an ulp; an
  // ulp is at most 2^-23 of the magnitudes added so far, since the greatest exponent is that of one of them.
  const TensorCore core = tensor_core(precision, compute_capability);
  const double ulps = 1 + (core.group + 1.0) / (1 << core.extra_bits);
  const double per_row = ulps / core.group * 0x1p-23;
  // one group more, since a chain may end in the middle of one
  const double one_chain = (n + core.group) * per_row;
  // LᵀL + LᵀH + HᵀL have 2^-7 + 2^-16 of the magnitude of HᵀH, in a chain of three times the rows; the two chains are
  // then added in fp32 (a product with beta = 1, a sum)
  if (precision == Precision::bf16x3) return one_chain * (1 + 3 * (0x1p-7 + 0x1p-16)) * (1 + 0x1p-6) + 0x1p-22;
  return one_chain;
}

double product_bound(const ProductChoice& choice, const ProductModel& model, std::int64_t block_rows) {
  // Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 3.5: n u for n products added in a chain, and
  // the rounding of both factors
  const double double_bound = static_cast<double>(block_rows + 3) * 0x1p-53;
  if (choice.precision == Precision::fp64 || choice.precision == Precision::int8) return double_bound;
  if (choice.precision == Precision::fp32 && choice.chain_rows == slab_rows) return fp32_product_bound;
  double factors = rounding_bound(choice.precision, model);
  if (choice.precision == Precision::fp16 && factors > 0) factors += half_underflow_bound(block_rows);
  return factors + chain_bound(choice.precision, model.compute_capability, choice.chain_rows) * (1 + factors) +
         double_bound;
}

std::int64_t chain_rows_within(Precision precision, const ProductModel& model, double rtol) {
  if (precision == Precision::fp64) return slab_rows;
  if (precision == Precision::int8) return int8_chain_rows;
  if (precision == Precision::fp32) return fp32_product_bound <= rtol ? slab_rows : 0;
  // a chain must not depend on the rows of a block: 2^20 stand for the most
  const auto fits = [&](std::int64_t rows) { return product_bound({precision, rows}, model, 1 << 20) <= rtol; };
  const auto longest = std::find_if(chain_ladder.rbegin(), chain_ladder.rend(), fits);
  return longest == chain_ladder.rend() ? 0 : *longest;
}

std::int64_t shortest_chain(Precision precision) {
  if (precision == Precision::fp64 || precision == Precision::fp32) return slab_rows;
  return precision == Precision::int8 ? int8_chain_rows : chain_ladder.front();
}

Range column_range(Precision precision, const ProductModel& model) {
  switch (precision) {
    case Precision::fp64:
    case Precision::int8:
      return {0, std::numeric_limits<double>::infinity()};
    case Precision::fp16:  // 65504 is the greatest half; stored halves are exact however small
      return {rounding_bound(precision, model) == 0 ? 0 : least_half_column, 65504};
    default:
      return {0x1p-50, 0x1p50};
  }
}

namespace {

// Peak dense rates from NVIDIA's data sheets: "H200 Tensor Core GPU" and "H100 Tensor Core GPU" (SXM; FP64 tensor core
// 67 TF, FP32 67, TF32 495, BF16 989, INT8 1979; 4.8 and 3.35 TB/s), "A100 Tensor Core GPU" (19.5, 19.5, 156, 312, 624;
// 2.0 TB/s, the 80 GB model), "L40S" (FP32 91.6, FP64 a 64th, TF32 183, BF16 362, INT8 733; 0.86 TB/s), "A40" (37.4, a
// 64th, 74.8, 149.7, 299; 0.70 TB/s), "HGX B200" (FP64 37, FP32 75, TF32 1100, BF16 2250, INT8 4500; 8 TB/s), "RTX PRO
// 6000 Blackwell" (FP32 125, FP64 a 64th; 1.8 TB/s; tensor rates as two L40S for want of figures without sparsity).
// Buses: PCI Express 5 and 4 with 16 lanes, 55 and 25 GB/s of 63 and 31.5.
struct KnownDevice {
  const char* name;
  DeviceRates rates;
};
constexpr DeviceRates h200 = {67e12, 67e12, 495e12, 989e12, 1979e12, 4.8e12, 55e9};
constexpr DeviceRates h100 = {67e12, 67e12, 495e12, 989e12, 1979e12, 3.35e12, 55e9};
constexpr DeviceRates a100 = {19.5e12, 19.5e12, 156e12, 312e12, 624e12, 2.0e12, 25e9};
constexpr DeviceRates a40 = {0.58e12, 37.4e12, 74.8e12, 149.7e12, 299e12, 0.70e12, 25e9};
constexpr DeviceRates l40s = {1.4e12, 91.6e12, 183e12, 362e12, 733e12, 0.86e12, 25e9};
constexpr DeviceRates b200 = {37e12, 75e12, 1100e12, 2250e12, 4500e12, 8.0e12, 55e9};
constexpr DeviceRates rtx_pro = {1.9e12, 125e12, 250e12, 500e12, 1000e12, 1.8e12, 55e9};
constexpr std::array<KnownDevice, 4> known = {{{"H200", h200}, {"H100", h100}, {"A100", a100}, {"L40S", l40s}}};

/// Of a peak that large products reach (cuBLAS on H100: 0.7 to 0.8).
constexpr double reached = 0.7;

}  // namespace

DeviceRates device_rates(const std::string& device_name, int compute_capability) {
  for (const auto& [name, rates] : known) {
    if (device_name.find(name) != std::string::npos) return rates;
  }
  switch (compute_capability) {
    case 80:
      return a100;
    case 86:
    case 87:
      return a40;
    case 89:
      return l40s;
    case 90:
      return h100;
    default:
      break;
  }
  if (compute_capability >= 120) return rtx_pro;
  return compute_capability >= 100 ? b200 : a40;
}

double product_seconds(const ProductChoice& choice, const DeviceRates& rates, std::int64_t columns) {
  const auto d = static_cast<double>(columns);
  const double operations = d * (d + 1);
  struct Cost {
    double rate, products, slab_passes;  ///< passes: how often the triangle of a slab is written or read
  };
  const auto cost = [&]() -> Cost {
    switch (choice.precision) {
      case Precision::fp64:
        return {rates.fp64, 1, 0};
      case Precision::fp32:
        return {rates.fp32, 1, 2};
      case Precision::tf32:
        return {rates.tf32, 1, 2};
      case Precision::bf16:
      case Precision::fp16:
        return {rates.bf16, 1, 2};
      case Precision::bf16x3:
        return {rates.bf16, 4, 4};
      case Precision::int8:
        return {rates.int8, 1, 0};
    }
    return {1, 1, 0};
  }();
  const double slab_bytes = cost.slab_passes * 4 * operations / 2;
  return cost.products * operations / (reached * cost.rate) +
         slab_bytes / static_cast<double>(choice.chain_rows) / (reached * rates.memory);
}

ProductChoice cheapest_product(const ProductModel& model, std::int64_t columns, double rtol,
                               const std::string& device_name, const std::vector<Precision>& offered) {
  const ProductChoice exact{Precision::fp64, slab_rows};
  if (size_of(model.type) > 4) return exact;
  const DeviceRates rates = device_rates(device_name, model.compute_capability);
  const double feed = static_cast<double>(columns) * static_cast<double>(size_of(model.type)) / rates.bus;
  if (product_seconds(exact, rates, columns) <= 0.8 * feed) return exact;

  ProductChoice best = exact;
  bool best_rounds = true;
  double best_seconds = product_seconds(exact, rates, columns);
  for (const Precision precision : offered) {
    const std::int64_t rows = chain_rows_within(precision, model, rtol);
    const bool rounds = rounding_bound(precision, model) > 0;
    if (precision == Precision::fp64 || rows == 0 || (precision == Precision::fp16 && rounds)) continue;
    const ProductChoice choice{precision, rows};
    const double seconds = product_seconds(choice, rates, columns);
    const bool cheaper = seconds < product_seconds(exact, rates, columns);
    const bool better = rounds == best_rounds ? seconds < best_seconds : !rounds;
    if (!cheaper || !better) continue;
    best = choice;
    best_rounds = rounds;
    best_seconds = seconds;
  }
  return best;
}

}  // namespace rowmill
