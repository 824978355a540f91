#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/host/kernels.hpp"
#include "kernels/host/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/cross_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/host/pack-inl.hpp"
#include "kernels/host/syrk-inl.hpp"

#ifndef ROWMILL_CROSS_PRODUCT_ONCE
#define ROWMILL_CROSS_PRODUCT_ONCE
namespace rowmill::host {
namespace {

/// Panels are a divisor of this wide on every target.
constexpr std::int64_t panel_multiple = 48;
constexpr std::int64_t padded(std::int64_t columns) {
  return (columns + panel_multiple - 1) / panel_multiple * panel_multiple;
}

/// Rows of a slab: the same bytes in either precision.
template <typename Work>
constexpr std::int64_t rows_of_slab = slab_rows* static_cast<std::int64_t>(sizeof(float)) /
                                      static_cast<std::int64_t>(sizeof(Work));

std::size_t panel_bytes(std::int64_t columns) {
  return static_cast<std::size_t>(padded(columns) * slab_rows) * sizeof(float);
}

/// Products of float32 neither overflow nor lose digits to underflow.
bool in_float_range(const double* greatest, std::int64_t columns) {
  return std::all_of(greatest, greatest + columns,
                     [](double most) { return most == 0 || (most >= 0x1p-50 && most <= 0x1p50); });
}

}  // namespace
}  // namespace rowmill::host
#endif

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
namespace {

struct Scratch {
  std::byte* panels;
  double* greatest;
};

template <typename Work>
void add_rows(const Block& block, const ColumnMap& map, std::int64_t first, std::int64_t count, const Scratch& scratch,
              double* packed) {
  const std::int64_t columns = column_count(block.x);
  for (std::int64_t row = first; row < first + count; row += rows_of_slab<Work>) {
    const std::int64_t rows = std::min(rows_of_slab<Work>, first + count - row);
    auto* const panels = reinterpret_cast<Work*>(scratch.panels);
    pack_slab<Work>(block, map, {row, rows, panels, scratch.greatest});
    if (std::is_same_v<Work, float> && !in_float_range(scratch.greatest, columns)) {
      add_rows<double>(block, map, row, rows, scratch, packed);
    } else {
      add_slab<Work>(panels, rows, columns, packed);
    }
  }
}

void add_block(const Block& block, ColumnMap map, Precision precision, std::byte* scratch, double* packed) {
  const Scratch parts{scratch, reinterpret_cast<double*>(scratch + panel_bytes(column_count(block.x)))};
  if (precision == Precision::fp32) {
    add_rows<float>(block, map, 0, row_count(block.x), parts, packed);
  } else {
    add_rows<double>(block, map, 0, row_count(block.x), parts, packed);
  }
}

}  // namespace
}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowmill::host {

HWY_EXPORT(add_block);

namespace {
constexpr std::size_t alignment = 64;
}  // namespace

std::size_t cross_product_scratch(std::int64_t columns, Precision) {
  return panel_bytes(columns) + static_cast<std::size_t>(padded(columns)) * sizeof(double) + alignment;
}

void cross_product(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed) {
  const std::int64_t columns = column_count(block.x);
  std::fill_n(packed, columns * (columns + 1) / 2, 0.0);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch);
  const std::uintptr_t to_aligned = (alignment - address % alignment) % alignment;
  HWY_DYNAMIC_DISPATCH(add_block)(block, map, precision, static_cast<std::byte*>(scratch) + to_aligned, packed);
}

}  // namespace rowmill::host
#endif
