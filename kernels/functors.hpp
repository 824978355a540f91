#pragma once
// What operations do with one element: bodies that CUDA kernels and host code share, so that their arithmetic is tested
// where there is no GPU. No CUDA header, no library call; nothing allocates.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/block.hpp"
#include "core/host_device.hpp"
#include "kernels/ops.hpp"

namespace rowmill::functors {

constexpr double infinity = std::numeric_limits<double>::infinity();

// --- Elements
// ---------------------------------------------------------------------------------------------------------

/// Stored types that C++ has no name for.
struct Half {};
struct BFloat {};

template <typename Stored>
constexpr std::size_t stored_bytes = sizeof(Stored);
template <>
inline constexpr std::size_t stored_bytes<Half> = 2;
template <>
inline constexpr std::size_t stored_bytes<BFloat> = 2;

template <std::size_t kBytes>
using BitsOf = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

template <typename To, typename From>
ROWMILL_HD inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

ROWMILL_HD inline double not_a_number() {
  return bits_as<double>(std::uint64_t{0x7ff8000000000000});
}

ROWMILL_HD inline std::uint8_t swapped_bytes(std::uint8_t bits) {
  return bits;
}
ROWMILL_HD inline std::uint16_t swapped_bytes(std::uint16_t bits) {
  return static_cast<std::uint16_t>(bits << 8 | bits >> 8);
}
ROWMILL_HD inline std::uint32_t swapped_bytes(std::uint32_t bits) {
  return bits << 24 | (bits & 0xff00u) << 8 | (bits >> 8 & 0xff00u) | bits >> 24;
}
ROWMILL_HD inline std::uint64_t swapped_bytes(std::uint64_t bits) {
  const std::uint64_t low = swapped_bytes(static_cast<std::uint32_t>(bits));
  return low << 32 | swapped_bytes(static_cast<std::uint32_t>(bits >> 32));
}

/// binary16 by arithmetic: the exponent is moved by a product with 2^112, which is right for subnormals too.
ROWMILL_HD inline float float_of_half(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const std::uint32_t moved = bits_as<std::uint32_t>(bits_as<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return bits_as<float>(moved | special | static_cast<std::uint32_t>(bits & 0x8000u) << 16);
}

/// An integer has an exact double if no more than 53 bits lie between its first and last that are set; `magnitude` is
/// then below 2^53 times its lowest bit.
ROWMILL_HD inline bool is_inexact(std::uint64_t magnitude) {
  const std::uint64_t lowest = magnitude & (std::uint64_t{0} - magnitude);
  return magnitude != 0 && magnitude >> 53 >= lowest;
}

/// An element as it is stored.
template <typename StoredType, bool kSwapped>
struct Element {
  using Stored = StoredType;
  static constexpr std::size_t bytes = stored_bytes<Stored>;
  using Bits = BitsOf<bytes>;
  static constexpr bool is_half = std::is_same_v<Stored, Half> || std::is_same_v<Stored, BFloat>;
  static constexpr bool may_be_missing = is_half || std::is_floating_point_v<Stored>;
  static constexpr bool may_be_inexact = !may_be_missing && bytes == 8;

  static ROWMILL_HD Bits native(Bits lying) { return kSwapped ? swapped_bytes(lying) : lying; }

  /// The nearest double, exact but for integers of 64 bits.
  static ROWMILL_HD double value(Bits lying) {
    const Bits bits = native(lying);
    if constexpr (std::is_same_v<Stored, Half>) {
      return static_cast<double>(float_of_half(bits));
    } else if constexpr (std::is_same_v<Stored, BFloat>) {
      return static_cast<double>(bits_as<float>(static_cast<std::uint32_t>(bits) << 16));
    } else {
      return static_cast<double>(bits_as<Stored>(bits));
    }
  }

  /// What inspect looks for: NaN, or an integer without an exact double.
  static ROWMILL_HD bool is_special(Bits lying) {
    if constexpr (may_be_missing) {
      const double x = value(lying);
      return x != x;
    } else if constexpr (may_be_inexact) {
      const Bits bits = native(lying);
      const bool negative = std::is_signed_v<Stored> && (bits >> 63) != 0;
      return is_inexact(negative ? Bits{0} - bits : bits);
    } else {
      return false;
    }
  }

  /// `from` is aligned as the type is.
  static ROWMILL_HD Bits load(const std::byte* from) {
    Bits bits;
    std::memcpy(&bits, __builtin_assume_aligned(from, bytes), bytes);
    return bits;
  }
};

/// Returns body(Element<…>()) for a type that is known when the program runs.
ROWMILL_HD_CALLS_ITS_ARGUMENT
template <typename Stored, typename Body>
ROWMILL_HD inline auto with_order(bool swapped, const Body& body) {
  return swapped ? body(Element<Stored, true>()) : body(Element<Stored, false>());
}
ROWMILL_HD_CALLS_ITS_ARGUMENT
template <typename Body>
ROWMILL_HD inline auto with_element(ElementType type, const Body& body) {
  switch (type.dtype) {
    case DType::f16:
      return with_order<Half>(type.swapped, body);
    case DType::bf16:
      return with_order<BFloat>(type.swapped, body);
    case DType::f32:
      return with_order<float>(type.swapped, body);
    case DType::f64:
      return with_order<double>(type.swapped, body);
    case DType::i8:
      return body(Element<std::int8_t, false>());
    case DType::i16:
      return with_order<std::int16_t>(type.swapped, body);
    case DType::i32:
      return with_order<std::int32_t>(type.swapped, body);
    case DType::i64:
      return with_order<std::int64_t>(type.swapped, body);
    case DType::u8:
      return body(Element<std::uint8_t, false>());
    case DType::u16:
      return with_order<std::uint16_t>(type.swapped, body);
    case DType::u32:
      return with_order<std::uint32_t>(type.swapped, body);
    case DType::u64:
      break;
  }
  return with_order<std::uint64_t>(type.swapped, body);
}

// --- Rows
// -------------------------------------------------------------------------------------------------------------

/// A block's x and mask as kernels take them.
struct AnyRows {
  const std::byte* data = nullptr;          ///< dense elements, or the values of sparse rows
  const std::int64_t* row_start = nullptr;  ///< sparse rows, else null
  const std::int64_t* index = nullptr;
  const std::uint8_t* mask = nullptr;  ///< null: none
  ElementType type;
  std::int64_t element_bytes = 0;
  std::int64_t rows = 0, columns = 0, stride = 0, mask_stride = 0;
  std::int64_t first_row = 0;  ///< the block's, counted from the source's row 0
};

AnyRows any_rows(const Block& block);

struct LoadValue {
  const std::byte* from;
  template <typename E>
  ROWMILL_HD double operator()(E) const {
    return E::value(E::load(from));
  }
};

/// Where sparse row `row` holds `column`, or -1.
ROWMILL_HD inline std::int64_t find_entry(const AnyRows& rows, std::int64_t row, std::int64_t column) {
  std::int64_t first = rows.row_start[row], end = rows.row_start[row + 1];
  while (first < end) {
    const std::int64_t middle = first + (end - first) / 2;
    const std::int64_t found = rows.index[middle];
    if (found == column) return middle;
    if (found < column) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return -1;
}

/// Element (row, column) as a double, NaN if it is missing: the way of every type and layout that has no faster one.
ROWMILL_HD inline double value_at(const AnyRows& rows, std::int64_t row, std::int64_t column) {
  if (rows.mask != nullptr && rows.mask[row * rows.mask_stride + column] != 0) {
    return not_a_number();
  }
  const std::int64_t at = rows.row_start == nullptr ? row * rows.stride + column : find_entry(rows, row, column);
  return at < 0 ? 0.0 : with_element(rows.type, LoadValue{rows.data + at * rows.element_bytes});
}

// --- Columns
// ----------------------------------------------------------------------------------------------------------

/// Shift and scale of one column.
struct Working {
  double shift = 0, scale = 1;
  ROWMILL_HD double operator()(double stored) const { return (stored - shift) * scale; }
};

ROWMILL_HD inline Working working_of(const ColumnMap& map, std::int64_t column) {
  return {map.shift == nullptr ? 0.0 : map.shift[column], map.scale == nullptr ? 1.0 : map.scale[column]};
}

/// Moments of some rows of a column.
struct MomentSums {
  std::int64_t count, missing;
  double sum, second, min, max;
};

/// column_moments. A task says what a column carries along, what is kept of it, how a value is taken, how two parts
/// become one, and where the end result goes; kernels/column_walk.hpp walks the block.
struct MomentTask {
  using Column = Working;
  using Part = MomentSums;
  ColumnMap map;
  ColumnMoments out;

  ROWMILL_HD Column column(std::int64_t j) const { return working_of(map, j); }
  static ROWMILL_HD Part nothing() { return {0, 0, 0.0, 0.0, infinity, -infinity}; }

  static ROWMILL_HD void take(Part& part, const Column& column, double stored) {
    if (stored != stored) {
      ++part.missing;
      return;
    }
    const double w = column(stored);
    ++part.count;
    part.sum += w;
    part.second += w * w;
    part.min = stored < part.min ? stored : part.min;
    part.max = stored > part.max ? stored : part.max;
  }

  static ROWMILL_HD void merge(Part& part, const Part& other) {
    part.count += other.count;
    part.missing += other.missing;
    part.sum += other.sum;
    part.second += other.second;
    part.min = other.min < part.min ? other.min : part.min;
    part.max = other.max > part.max ? other.max : part.max;
  }

  ROWMILL_HD void store(std::int64_t j, const Part& part) const {
    out.count[j] = part.count;
    out.missing[j] = part.missing;
    out.sum[j] = part.sum;
    out.second[j] = part.second;
    // + 0.0: a zero without a sign, so that the least of -0 and +0 does not depend on which comes first
    out.min[j] = part.min + 0.0;
    out.max[j] = part.max + 0.0;
  }
};

/// The value nearest to a target so far, +inf while there is none.
struct Nearest {
  double value, distance;
};

/// nearest_values. The least by distance and then by value: no order of rows shows.
struct NearestTask {
  struct Column {
    double target;
  };
  using Part = Nearest;
  const double* targets = nullptr;
  double* out = nullptr;

  ROWMILL_HD Column column(std::int64_t j) const { return {targets[j]}; }
  static ROWMILL_HD Part nothing() { return {infinity, infinity}; }

  static ROWMILL_HD void take(Part& part, const Column& column, double stored) {
    const double difference = stored - column.target, distance = difference < 0 ? -difference : difference;
    // NaN and infinities are taken for nothing
    const bool finite = stored < infinity && stored > -infinity;
    merge(part, {finite ? stored : infinity, finite ? distance : infinity});
  }

  static ROWMILL_HD void merge(Part& part, const Part& other) {
    const bool nearer = other.distance < part.distance;
    const bool tie = other.distance == part.distance && other.value < part.value;
    part.value = nearer || tie ? other.value : part.value;
    part.distance = nearer || tie ? other.distance : part.distance;
  }

  ROWMILL_HD void store(std::int64_t j, const Part& part) const {
    out[j] = part.value == infinity ? 0.0 : part.value + 0.0;
  }
};

// --- Combining
// --------------------------------------------------------------------------------------------------------

struct Add {
  template <typename T>
  ROWMILL_HD T operator()(T acc, T value) const {
    return acc + value;
  }
};
/// As std::min and std::max are: a NaN in `value` is passed over.
struct KeepMin {
  template <typename T>
  ROWMILL_HD T operator()(T acc, T value) const {
    return value < acc ? value : acc;
  }
};
struct KeepMax {
  template <typename T>
  ROWMILL_HD T operator()(T acc, T value) const {
    return acc < value ? value : acc;
  }
};

}  // namespace rowmill::functors
