#include "tests/kernels/random_block.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "kernels/host/simd.hpp"
// simd.hpp comes first
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace rowmill::test {

namespace {

std::uint16_t half_bits(double value) {
  if (std::isnan(value)) return 0x7e01;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int field = magnitude == 0 ? 0 : std::max(exponent + 14, 0);
  const auto fraction = static_cast<std::int64_t>(std::ldexp(magnitude, 25 - std::max(field, 1)));
  return static_cast<std::uint16_t>(sign | (field << 10) | (fraction & 1023));
}

template <typename T>
void put(T value, bool swapped, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
  if (swapped) std::reverse(to, to + sizeof value);
}

double whole_number(std::mt19937_64& random, bool is_unsigned) {
  const auto value = static_cast<double>(static_cast<std::int64_t>(random() % 121) - 60);
  return is_unsigned ? std::abs(value) : value;
}

bool is_unsigned(DType type) {
  return type == DType::u8 || type == DType::u16 || type == DType::u32 || type == DType::u64;
}

}  // namespace

void for_each_target(const std::function<void(const std::string&)>& body) {
  struct Restore {
    ~Restore() {
      hwy::SetSupportedTargetsForTest(0);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
  } restore;
  std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  if (std::find(targets.begin(), targets.end(), HWY_STATIC_TARGET) == targets.end())
    targets.push_back(HWY_STATIC_TARGET);
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body(hwy::TargetName(target));
    if (testing::Test::HasFatalFailure()) return;
  }
}

void encode(double value, ElementType type, std::byte* to) {
  switch (type.dtype) {
    case DType::f16:
      return put(half_bits(value), type.swapped, to);
    case DType::bf16:
      return put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16),
                 type.swapped, to);
    case DType::f32:
      return put(static_cast<float>(value), type.swapped, to);
    case DType::f64:
      return put(value, type.swapped, to);
    case DType::i8:
      return put(static_cast<std::int8_t>(value), type.swapped, to);
    case DType::i16:
      return put(static_cast<std::int16_t>(value), type.swapped, to);
    case DType::i32:
      return put(static_cast<std::int32_t>(value), type.swapped, to);
    case DType::i64:
      return put(static_cast<std::int64_t>(value), type.swapped, to);
    case DType::u8:
      return put(static_cast<std::uint8_t>(value), type.swapped, to);
    case DType::u16:
      return put(static_cast<std::uint16_t>(value), type.swapped, to);
    case DType::u32:
      return put(static_cast<std::uint32_t>(value), type.swapped, to);
    case DType::u64:
      return put(static_cast<std::uint64_t>(value), type.swapped, to);
  }
}

BlockShape plain_shape(std::int64_t rows, std::int64_t columns, DType type) {
  BlockShape shape;
  shape.rows = rows;
  shape.columns = columns;
  shape.type = {type, false};
  return shape;
}

RandomBlock::RandomBlock(const BlockShape& shape, std::mt19937_64& random) {
  const auto bytes = static_cast<std::int64_t>(size_of(shape.type));
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto draw = [&] {
    if (is_floating(shape.type.dtype) && uniform(random) < shape.nan_share) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return shape.draw ? shape.draw(random) : whole_number(random, is_unsigned(shape.type.dtype));
  };
  block_.range = {shape.first_row, shape.rows};
  if (shape.sparse) {
    row_start_.push_back(0);
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      for (std::int64_t j = 0; j < shape.columns; ++j) {
        if (uniform(random) > 0.3) continue;
        index_.push_back(j);
        data_.resize(data_.size() + static_cast<std::size_t>(bytes));
        encode(draw(), shape.type, data_.data() + data_.size() - bytes);
      }
      row_start_.push_back(static_cast<std::int64_t>(index_.size()));
    }
    block_.x = CsrRows{row_start_.data(), index_.data(), data_.data(), shape.type, shape.rows, shape.columns};
  } else {
    const std::int64_t stride = shape.columns + shape.gap;
    data_.assign(static_cast<std::size_t>(shape.rows * stride * bytes), std::byte{0xff});
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      for (std::int64_t j = 0; j < shape.columns; ++j)
        encode(draw(), shape.type, data_.data() + (i * stride + j) * bytes);
    }
    block_.x = DenseRows{data_.data(), shape.type, shape.rows, shape.columns, stride};
  }
  if (!shape.masked) return;
  const std::int64_t mask_stride = shape.columns + shape.gap;
  mask_.assign(static_cast<std::size_t>(shape.rows * mask_stride), 1);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t j = 0; j < shape.columns; ++j) mask_[i * mask_stride + j] = random() % 10 == 0 ? 1 : 0;
  }
  block_.missing = MaskView{mask_.data(), shape.rows, shape.columns, mask_stride};
}

void RandomBlock::set(std::int64_t row, std::int64_t column, double value) {
  const auto& dense = std::get<DenseRows>(block_.x);
  encode(value, dense.type,
         data_.data() + (row * dense.stride + column) * static_cast<std::int64_t>(size_of(dense.type)));
}

BlockShape random_shape(std::mt19937_64& random) {
  constexpr std::int64_t sizes[] = {1,  2,  3,  5,  7,  8,  9,  12, 15, 16, 17, 23,  24,
                                    25, 31, 33, 47, 48, 49, 63, 64, 65, 80, 97, 129, 150};
  BlockShape shape;
  shape.rows = sizes[random() % std::size(sizes)];
  shape.columns = sizes[random() % std::size(sizes)];
  shape.type = {all_types[random() % std::size(all_types)], random() % 3 == 0};
  shape.gap = random() % 3 == 0 ? 5 : 0;
  shape.sparse = random() % 5 == 0;
  shape.masked = random() % 4 == 0;
  shape.nan_share = random() % 3 == 0 ? 0.05 : 0;
  shape.first_row = static_cast<std::int64_t>(random() % 1000000007);
  return shape;
}

std::string describe(const BlockShape& shape) {
  return std::to_string(shape.rows) + " x " + std::to_string(shape.columns) + " " + name_of(shape.type) +
         (shape.sparse ? " sparse" : "") + (shape.masked ? " masked" : "") + " gap " + std::to_string(shape.gap) +
         " nan " + std::to_string(shape.nan_share);
}

}  // namespace rowmill::test
