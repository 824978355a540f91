#include "kernels/host/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace rowmill::host {

namespace {

template <typename T>
T load(const std::byte* from, bool swapped) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof bytes);
  if (swapped) std::reverse(bytes, bytes + sizeof bytes);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

long double half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  long double magnitude =
      std::ldexp(static_cast<long double>(fraction + (exponent == 0 ? 0 : 1024)), std::max(exponent, 1) - 25);
  if (exponent == 31) {
    magnitude =
        fraction == 0 ? std::numeric_limits<long double>::infinity() : std::numeric_limits<long double>::quiet_NaN();
  }
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}

long double stored_value(ElementType type, const std::byte* from) {
  switch (type.dtype) {
    case DType::f16:
      return half(load<std::uint16_t>(from, type.swapped));
    case DType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(from, type.swapped)) << 16);
    case DType::f32:
      return load<float>(from, type.swapped);
    case DType::f64:
      return load<double>(from, type.swapped);
    case DType::i8:
      return load<std::int8_t>(from, type.swapped);
    case DType::i16:
      return load<std::int16_t>(from, type.swapped);
    case DType::i32:
      return load<std::int32_t>(from, type.swapped);
    case DType::i64:
      return static_cast<long double>(load<std::int64_t>(from, type.swapped));
    case DType::u8:
      return load<std::uint8_t>(from, type.swapped);
    case DType::u16:
      return load<std::uint16_t>(from, type.swapped);
    case DType::u32:
      return load<std::uint32_t>(from, type.swapped);
    case DType::u64:
      return static_cast<long double>(load<std::uint64_t>(from, type.swapped));
  }
  return 0;
}

long double value_or_zero(const Block& block, std::int64_t row, std::int64_t column) {
  if (const auto* dense = std::get_if<DenseRows>(&block.x)) {
    const auto bytes = static_cast<std::int64_t>(size_of(dense->type));
    return stored_value(dense->type, dense->data + (row * dense->stride + column) * bytes);
  }
  const auto& sparse = std::get<CsrRows>(block.x);
  const auto bytes = static_cast<std::int64_t>(size_of(sparse.type));
  for (std::int64_t k = sparse.row_start[row]; k < sparse.row_start[row + 1]; ++k) {
    if (sparse.index[k] == column) return stored_value(sparse.type, sparse.value + k * bytes);
  }
  return 0;
}

long double working_value(const Block& block, ColumnMap map, std::int64_t row, std::int64_t column) {
  const auto x = reference_value(block, row, column);
  if (!x) return std::numeric_limits<long double>::quiet_NaN();
  const double stored = static_cast<double>(*x);
  const double shifted = stored - (map.shift == nullptr ? 0.0 : map.shift[column]);
  return shifted * (map.scale == nullptr ? 1.0 : map.scale[column]);
}

}  // namespace

std::optional<long double> reference_value(const Block& block, std::int64_t row, std::int64_t column) {
  if (block.missing && block.missing->at(row, column) != 0) return std::nullopt;
  const long double value = value_or_zero(block, row, column);
  if (std::isnan(value)) return std::nullopt;
  return value;
}

ReferenceMoments reference_moments(const Block& block, ColumnMap map) {
  const auto columns = static_cast<std::size_t>(column_count(block.x));
  const double infinity = std::numeric_limits<double>::infinity();
  ReferenceMoments out;
  out.count.assign(columns, 0);
  out.missing.assign(columns, 0);
  out.sum = out.second = out.absolute = std::vector<long double>(columns, 0);
  out.min.assign(columns, infinity);
  out.max.assign(columns, -infinity);
  for (std::int64_t i = 0; i < row_count(block.x); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const auto x = reference_value(block, i, static_cast<std::int64_t>(j));
      ++(x ? out.count : out.missing)[j];
      if (!x) continue;
      const long double w = working_value(block, map, i, static_cast<std::int64_t>(j));
      out.sum[j] += w;
      out.second[j] += w * w;
      out.absolute[j] += std::abs(w);
      out.min[j] = std::min(out.min[j], static_cast<double>(*x));
      out.max[j] = std::max(out.max[j], static_cast<double>(*x));
    }
  }
  return out;
}

std::vector<long double> reference_cross_product(const Block& block, ColumnMap map, std::vector<long double>* scale) {
  const std::int64_t columns = column_count(block.x);
  std::vector<long double> packed(static_cast<std::size_t>(columns * (columns + 1) / 2), 0);
  if (scale != nullptr) scale->assign(packed.size(), 0);
  std::vector<long double> w(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < row_count(block.x); ++row) {
    for (std::int64_t j = 0; j < columns; ++j) w[static_cast<std::size_t>(j)] = working_value(block, map, row, j);
    std::size_t entry = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      for (std::size_t j = 0; j <= i; ++j, ++entry) {
        packed[entry] += w[i] * w[j];
        if (scale != nullptr) (*scale)[entry] += std::abs(w[i] * w[j]);
      }
    }
  }
  return packed;
}

std::vector<double> reference_nearest(const Block& block, const double* targets) {
  std::vector<double> out;
  for (std::int64_t j = 0; j < column_count(block.x); ++j) {
    std::optional<double> best;
    for (std::int64_t i = 0; i < row_count(block.x); ++i) {
      const auto x = reference_value(block, i, j);
      if (!x || std::isinf(*x)) continue;
      const double value = static_cast<double>(*x);
      const double distance = std::abs(value - targets[j]), least = best ? std::abs(*best - targets[j]) : 0;
      if (!best || distance < least || (distance == least && value < *best)) best = value;
    }
    out.push_back(best.value_or(0.0));
  }
  return out;
}

void reference_inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact) {
  const std::int64_t columns = column_count(block.x);
  for (std::int64_t i = 0; i < row_count(block.x); ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto x = reference_value(block, i, j);
      if (!x) *first_missing = std::min(*first_missing, (block.range.first + i) * columns + j);
      const long double stored = value_or_zero(block, i, j);
      const bool integer = is_integer(element_type(block.x).dtype);
      if (integer && static_cast<long double>(static_cast<double>(stored)) != stored)
        *inexact = std::max<std::int64_t>(*inexact, 1);
    }
  }
}

}  // namespace rowmill::host
