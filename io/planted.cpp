#include "io/planted.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace rowmill {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

/// Finaliser of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), variant
/// 13 of Stafford.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

enum class Stream : std::uint64_t { loadings = 1, mean, factors, noise, missing };

std::uint64_t stream_key(std::uint64_t seed, Stream stream) {
  return mix(mix(seed + kGolden) + static_cast<std::uint64_t>(stream) * kGolden);
}

std::uint64_t row_key(std::uint64_t key, std::int64_t row) {
  return mix(key + (static_cast<std::uint64_t>(row) + 1) * kGolden);
}

/// Natural logarithm of a normal double, to about 1e-13 relative, from exactly rounded operations only: the C library's
/// differs between machines. m · 2^e with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh((m - 1) / (m + 1)).
inline double portable_log(double x) {
  constexpr std::uint64_t kHalfRoot = 0x3fe6a09e00000000;
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) - kHalfRoot;
  const auto exponent = static_cast<double>(static_cast<std::int64_t>(shifted) >> 52);
  const double m = std::bit_cast<double>((shifted & 0x000fffffffffffff) + kHalfRoot);
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  const double series =
      2.0 +
      q * (2.0 / 3 + q * (2.0 / 5 + q * (2.0 / 7 + q * (2.0 / 9 + q * (2.0 / 11 + q * (2.0 / 13 + q * 2.0 / 15))))));
  return exponent * 0.6931471805599453 + s * series;
}

/// Two independent standard normal numbers of 64 random bits, by Box and Muller (Annals of Mathematical Statistics 29,
/// 1958): 32 bits of radius, 2 of quadrant, 30 of angle within ± π/4.
inline void normal_pair(std::uint64_t bits, double& first, double& second) {
  const double uniform = (static_cast<double>(static_cast<std::int64_t>(bits >> 32)) + 0.5) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * portable_log(uniform));
  const double t =
      ((static_cast<double>(static_cast<std::int64_t>(bits & 0x3fffffff)) + 0.5) * 0x1p-30 - 0.5) * 1.5707963267948966;
  const double q = t * t;
  const double sine =
      t * (1 + q * (-1.0 / 6 + q * (1.0 / 120 + q * (-1.0 / 5040 + q * (1.0 / 362880 - q * 1.0 / 39916800)))));
  const double cosine =
      1 + q * (-1.0 / 2 + q * (1.0 / 24 + q * (-1.0 / 720 + q * (1.0 / 40320 - q * (1.0 / 3628800 - q / 479001600)))));
  const bool turned = ((bits >> 30) & 1) != 0, opposite = ((bits >> 31) & 1) != 0;
  const double signed_radius = opposite ? -radius : radius;
  first = signed_radius * (turned ? -sine : cosine);
  second = signed_radius * (turned ? cosine : sine);
}

void fill_normals(std::uint64_t key, std::int64_t pairs, double* values) {
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    key += kGolden;
    normal_pair(mix(key), values[2 * pair], values[2 * pair + 1]);
  }
}

std::int64_t pairs_of(std::int64_t count) {
  return (count + 1) / 2;
}

}  // namespace

PlantedModel::PlantedModel(const GenerateOptions& options)
    : columns_(options.columns),
      column_pairs_(pairs_of(options.columns)),
      rank_(options.rank),
      factor_pairs_(pairs_of(options.rank)) {
  const bool integer = is_integer(options.type);
  const bool is_unsigned = integer && options.type >= DType::u8;
  noise_ = options.noise.value_or(integer ? 4 : 1);
  rounding_variance_ = integer ? 1.0 / 12 : 0;
  const double spread = options.mean_spread.value_or(integer ? 10 : 1);
  const double offset = options.mean_offset.value_or(is_unsigned ? 128 : 0);
  const double loading =
      options.loading.value_or(integer ? 4 : 1) / std::sqrt(static_cast<double>(std::max<std::int64_t>(rank_, 1)));

  noise_key_ = stream_key(options.seed, Stream::noise);
  factor_key_ = stream_key(options.seed, Stream::factors);
  missing_key_ = stream_key(options.seed, Stream::missing);
  missing_below_ = static_cast<std::uint64_t>(options.missing_share * 0x1p32);

  mean_.resize(static_cast<std::size_t>(2 * column_pairs_));
  fill_normals(stream_key(options.seed, Stream::mean), column_pairs_, mean_.data());
  for (double& value : mean_) value = offset + spread * value;
  mean_.resize(static_cast<std::size_t>(columns_));
  std::vector<double> row(static_cast<std::size_t>(2 * column_pairs_));
  for (std::int64_t k = 0; k < rank_; ++k) {
    fill_normals(row_key(stream_key(options.seed, Stream::loadings), k), column_pairs_, row.data());
    for (std::int64_t j = 0; j < columns_; ++j) loadings_.push_back(loading * row[static_cast<std::size_t>(j)]);
  }
}

void PlantedModel::fill_row(std::int64_t row, double* values, double* scratch) const {
  fill_normals(row_key(factor_key_, row), factor_pairs_, scratch);
  fill_normals(row_key(noise_key_, row), column_pairs_, values);
  for (std::int64_t j = 0; j < columns_; ++j) values[j] = mean_[static_cast<std::size_t>(j)] + noise_ * values[j];
  for (std::int64_t k = 0; k < rank_; ++k) {
    const double* const loadings = loadings_.data() + k * columns_;
    const double factor = scratch[k];
    for (std::int64_t j = 0; j < columns_; ++j) values[j] += factor * loadings[j];
  }
  if (missing_below_ == 0) return;
  std::uint64_t key = row_key(missing_key_, row);
  for (std::int64_t j = 0; j < columns_; ++j) {
    key += kGolden;
    if ((mix(key) >> 32) < missing_below_) values[j] = std::numeric_limits<double>::quiet_NaN();
  }
}

std::vector<double> PlantedModel::standard_deviation() const {
  std::vector<double> result(static_cast<std::size_t>(columns_));
  for (std::int64_t j = 0; j < columns_; ++j) {
    double variance = noise_ * noise_ + rounding_variance_;
    for (std::int64_t k = 0; k < rank_; ++k) {
      const double loading = loadings_[static_cast<std::size_t>(k * columns_ + j)];
      variance += loading * loading;
    }
    result[static_cast<std::size_t>(j)] = std::sqrt(variance);
  }
  return result;
}

std::vector<double> PlantedModel::covariance() const {
  std::vector<double> result(static_cast<std::size_t>(columns_ * columns_));
  for (std::int64_t i = 0; i < columns_; ++i) {
    double* const row = result.data() + i * columns_;
    row[i] = noise_ * noise_ + rounding_variance_;
    for (std::int64_t k = 0; k < rank_; ++k) {
      const double* const loadings = loadings_.data() + k * columns_;
      for (std::int64_t j = 0; j < columns_; ++j) row[j] += loadings[i] * loadings[j];
    }
  }
  return result;
}

namespace {

/// Nearest binary16, ties to even, clipped to the finite range.
std::uint16_t to_float16(double value) {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint64_t>(value) >> 48 & 0x8000);
  if (std::isnan(value)) return sign | 0x7e00;
  const double size = std::min(std::fabs(value), 65504.0);
  // below 2^-14 the spacing is 2^-24; above, 2^(exponent - 10); rounding up into the next exponent carries rightly
  const int field = static_cast<int>(std::bit_cast<std::uint64_t>(size) >> 52);
  const int exponent = std::max(field - 1023, -14);
  const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 10 - exponent) << 52);
  const auto steps = static_cast<int>(std::nearbyint(size * scale));
  return static_cast<std::uint16_t>(sign + ((exponent + 14) << 10) + steps);
}

template <typename T>
T to_integer(double value) {
  // the greatest value of a 64-bit type is no double: at or above it the bound itself is meant
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto kGreatest = static_cast<double>(std::numeric_limits<T>::max());
  const double rounded = std::nearbyint(value);
  if (rounded >= kGreatest) return std::numeric_limits<T>::max();
  return rounded <= kLeast ? std::numeric_limits<T>::min() : static_cast<T>(rounded);
}

template <typename T, typename Convert>
void encode_as(const double* values, std::int64_t count, bool swapped, std::byte* to, Convert convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(static_cast<T>(convert(values[i])));
    if (swapped) std::reverse(bytes.begin(), bytes.end());
    std::copy(bytes.begin(), bytes.end(), to + i * static_cast<std::int64_t>(sizeof(T)));
  }
}

}  // namespace

void encode_values(const double* values, std::int64_t count, ElementType type, std::byte* to) {
  const auto store = [&](auto convert) {
    using T = decltype(convert(0.0));
    type.swapped ? encode_as<T>(values, count, true, to, convert) : encode_as<T>(values, count, false, to, convert);
  };
  switch (type.dtype) {
    case DType::f16:
      return store(to_float16);
    case DType::bf16:
      throw std::logic_error("bfloat16 is not generated");
    case DType::f32:
      return store([](double value) { return static_cast<float>(value); });
    case DType::f64:
      return store([](double value) { return value; });
    case DType::i8:
      return store(to_integer<std::int8_t>);
    case DType::i16:
      return store(to_integer<std::int16_t>);
    case DType::i32:
      return store(to_integer<std::int32_t>);
    case DType::i64:
      return store(to_integer<std::int64_t>);
    case DType::u8:
      return store(to_integer<std::uint8_t>);
    case DType::u16:
      return store(to_integer<std::uint16_t>);
    case DType::u32:
      return store(to_integer<std::uint32_t>);
    case DType::u64:
      return store(to_integer<std::uint64_t>);
  }
}

}  // namespace rowmill
