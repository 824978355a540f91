#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/host/kernels.hpp"
#include "kernels/host/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/inspect.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Plain loops over the bits, which the compiler turns into vector code for each target: one compare an element says
// whether there is anything to look for, and only then is it looked for.
HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
namespace {

template <typename Bits, bool kSwapped>
HWY_INLINE Bits load(const std::byte* from, std::int64_t i) {
  Bits bits;
  std::memcpy(&bits, from + static_cast<std::int64_t>(sizeof(Bits)) * i, sizeof bits);
  if constexpr (kSwapped && sizeof(Bits) == 2) bits = __builtin_bswap16(bits);
  if constexpr (kSwapped && sizeof(Bits) == 4) bits = __builtin_bswap32(bits);
  if constexpr (kSwapped && sizeof(Bits) == 8) bits = __builtin_bswap64(bits);
  return bits;
}

/// NaN: a magnitude above infinity's.
template <typename BitsType, BitsType kInfinity, bool kSwapped>
struct Nan {
  using Bits = BitsType;
  static HWY_INLINE Bits suspicious(const std::byte* from, std::int64_t i) {
    constexpr auto magnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
    return static_cast<Bits>((load<Bits, kSwapped>(from, i) & magnitude) > kInfinity ? 1 : 0);
  }
  static bool certain(const std::byte* from, std::int64_t i) { return suspicious(from, i) != 0; }
};

/// Integers of 64 bits: suspicious beyond 2^53, inexact if more than 53 bits lie between the first and the last that is
/// set.
template <typename Integer, bool kSwapped>
struct Inexact {
  using Bits = std::uint64_t;
  static HWY_INLINE Bits magnitude(const std::byte* from, std::int64_t i) {
    const Bits bits = load<Bits, kSwapped>(from, i);
    if constexpr (std::is_unsigned_v<Integer>) return bits;
    return (bits >> 63) != 0 ? Bits{0} - bits : bits;
  }
  static HWY_INLINE Bits suspicious(const std::byte* from, std::int64_t i) { return magnitude(from, i) >> 53; }
  static bool certain(const std::byte* from, std::int64_t i) {
    const Bits bits = magnitude(from, i);
    return bits != 0 && (bits >> std::countr_zero(bits)) >> 53 != 0;
  }
};

/// The first element that the test is certain of, or `count`.
template <typename Test>
std::int64_t find_first(const std::byte* from, std::int64_t count) {
  constexpr std::int64_t piece = 2048;
  for (std::int64_t first = 0; first < count; first += piece) {
    const std::int64_t end = std::min(count, first + piece);
    typename Test::Bits seen = 0;
    for (std::int64_t i = first; i < end; ++i)
      seen = static_cast<typename Test::Bits>(seen | Test::suspicious(from, i));
    if (seen == 0) continue;
    for (std::int64_t i = first; i < end; ++i) {
      if (Test::certain(from, i)) return i;
    }
  }
  return count;
}

template <template <bool> typename Test>
std::int64_t find_in_order(bool swapped, const std::byte* from, std::int64_t count) {
  return swapped ? find_first<Test<true>>(from, count) : find_first<Test<false>>(from, count);
}

template <bool kSwapped>
using HalfNan = Nan<std::uint16_t, 0x7c00, kSwapped>;
template <bool kSwapped>
using BFloatNan = Nan<std::uint16_t, 0x7f80, kSwapped>;
template <bool kSwapped>
using FloatNan = Nan<std::uint32_t, 0x7f800000, kSwapped>;
template <bool kSwapped>
using DoubleNan = Nan<std::uint64_t, 0x7ff0000000000000, kSwapped>;
template <bool kSwapped>
using InexactSigned = Inexact<std::int64_t, kSwapped>;
template <bool kSwapped>
using InexactUnsigned = Inexact<std::uint64_t, kSwapped>;

/// The first NaN, or the first integer without an exact double; `count` if there is none.
std::int64_t find_special(ElementType type, const std::byte* from, std::int64_t count) {
  switch (type.dtype) {
    case DType::f16:
      return find_in_order<HalfNan>(type.swapped, from, count);
    case DType::bf16:
      return find_in_order<BFloatNan>(type.swapped, from, count);
    case DType::f32:
      return find_in_order<FloatNan>(type.swapped, from, count);
    case DType::f64:
      return find_in_order<DoubleNan>(type.swapped, from, count);
    case DType::i64:
      return find_in_order<InexactSigned>(type.swapped, from, count);
    case DType::u64:
      return find_in_order<InexactUnsigned>(type.swapped, from, count);
    default:
      return count;
  }
}

/// The first byte that is not zero, or `count`.
std::int64_t find_set(const std::uint8_t* from, std::int64_t count) {
  constexpr std::int64_t piece = 4096;
  for (std::int64_t first = 0; first < count; first += piece) {
    const std::int64_t end = std::min(count, first + piece);
    std::uint8_t seen = 0;
    for (std::int64_t i = first; i < end; ++i) seen = static_cast<std::uint8_t>(seen | from[i]);
    if (seen == 0) continue;
    return std::find_if(from + first, from + end, [](std::uint8_t byte) { return byte != 0; }) - from;
  }
  return count;
}

}  // namespace
}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowmill::host {

HWY_EXPORT(find_special);
HWY_EXPORT(find_set);

namespace {

/// Of rows × columns elements with a stride: the first (by rows) that `find(row, first column, count)` finds, as row ·
/// columns + column; rows without gaps are searched in one piece.
template <typename Find>
std::int64_t first_of(std::int64_t rows, std::int64_t columns, std::int64_t stride, Find find) {
  if (stride == columns || rows == 1) {
    const std::int64_t found = find(0, rows * columns);
    return found == rows * columns ? nothing_missing : found;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t found = find(row, columns);
    if (found != columns) return row * columns + found;
  }
  return nothing_missing;
}

std::int64_t first_special(const DenseRows& dense) {
  if (is_integer(dense.type.dtype) && size_of(dense.type) < 8) return nothing_missing;
  return first_of(dense.rows, dense.columns, dense.stride, [&](std::int64_t row, std::int64_t count) {
    return HWY_DYNAMIC_DISPATCH(find_special)(dense.type, dense.middle_rows(row, 0).data, count);
  });
}

std::int64_t first_special(const CsrRows& sparse) {
  const std::int64_t count = sparse.row_start[sparse.rows];
  const std::int64_t found = HWY_DYNAMIC_DISPATCH(find_special)(sparse.type, sparse.value, count);
  if (found == count) return nothing_missing;
  const std::int64_t* const after = std::upper_bound(sparse.row_start, sparse.row_start + sparse.rows + 1, found);
  return (after - sparse.row_start - 1) * sparse.columns + sparse.index[found];
}

std::int64_t first_masked(const MaskView& mask) {
  return first_of(mask.rows, mask.cols, mask.stride, [&](std::int64_t row, std::int64_t count) {
    return HWY_DYNAMIC_DISPATCH(find_set)(mask.row(row), count);
  });
}

}  // namespace

void inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact) {
  std::int64_t special = std::visit([](const auto& rows) { return first_special(rows); }, block.x);
  if (is_integer(element_type(block.x).dtype)) {
    if (special != nothing_missing) *inexact = std::max<std::int64_t>(*inexact, 1);
    special = nothing_missing;
  }
  if (block.missing) special = std::min(special, first_masked(*block.missing));
  if (special == nothing_missing) return;
  *first_missing = std::min(*first_missing, block.range.first * column_count(block.x) + special);
}

void inspect_product(const Block& block, const double* packed, std::int64_t* first_missing) {
  std::int64_t inexact = 0;
  for (std::int64_t i = 0, at = 0; i < column_count(block.x); ++i, at += i + 1) {
    if (std::isnan(packed[at])) return inspect(block, first_missing, &inexact);
  }
}

}  // namespace rowmill::host
#endif
