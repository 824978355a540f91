// The product of a packed slab with itself; compiled once for each target (see simd.hpp).
//
// A slab of k rows lies packed in panels of three vectors of columns: element (row, column) of panel p is at
// p · k · width + row · width + column. One packing serves both operands of WᵀW. The kernel keeps a tile of `rows` ×
// three vectors of the result in registers and walks the k rows once: a tile row is a column of W broadcast, a tile
// column a vector of W. Tiles below the diagonal only; near it, and at the right edge, fewer vectors.
#if defined(ROWMILL_KERNELS_HOST_SYRK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ROWMILL_KERNELS_HOST_SYRK_INL_HPP
#undef ROWMILL_KERNELS_HOST_SYRK_INL_HPP
#else
#define ROWMILL_KERNELS_HOST_SYRK_INL_HPP
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/host/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {

/// The tile of a working type. The rows of a tile divide the panel's width, and rows · 3 accumulators with their
/// operands fit the registers.
template <typename Work>
struct TileShape {
  using Tag = hn::ScalableTag<Work>;
  static constexpr std::int64_t lanes = hn::MaxLanes(Tag());
  static constexpr std::int64_t width = 3 * lanes;
  static constexpr std::int64_t double_lanes = hn::MaxLanes(Doubles());
  static constexpr std::int64_t rows = double_lanes >= 8 ? 8 : double_lanes == 4 ? 4 : double_lanes == 2 ? 6 : 3;
};

/// One row of a tile. Named members and no array: the compiler then keeps all of a tile in registers.
template <typename Work>
struct TileRow {
  using Tag = hn::ScalableTag<Work>;
  using Vector = hn::Vec<Tag>;
  Vector v0, v1, v2;

  HWY_INLINE TileRow() : v0(hn::Zero(Tag())), v1(v0), v2(v0) {}

  template <int kVectors>
  HWY_INLINE void add_product(const Work* a, Vector b0, Vector b1, Vector b2) {
    const Vector factor = hn::Set(Tag(), *a);
    v0 = hn::MulAdd(factor, b0, v0);
    if constexpr (kVectors > 1) v1 = hn::MulAdd(factor, b1, v1);
    if constexpr (kVectors > 2) v2 = hn::MulAdd(factor, b2, v2);
  }

  template <int kVectors>
  HWY_INLINE void store(Work* to) const {
    constexpr std::int64_t lanes = TileShape<Work>::lanes;
    hn::StoreU(v0, Tag(), to);
    if constexpr (kVectors > 1) hn::StoreU(v1, Tag(), to + lanes);
    if constexpr (kVectors > 2) hn::StoreU(v2, Tag(), to + 2 * lanes);
  }
};

/// out (rows × width) = the products of `rows` columns at `a` with kVectors vectors of columns at `b`, over k rows.
template <typename Work, int kVectors>
HWY_NOINLINE void multiply_tile(const Work* HWY_RESTRICT a, const Work* HWY_RESTRICT b, std::int64_t k,
                                Work* HWY_RESTRICT out) {
  using Shape = TileShape<Work>;
  const typename Shape::Tag d;
  constexpr std::int64_t rows = Shape::rows, width = Shape::width, lanes = Shape::lanes;
  TileRow<Work> r0, r1, r2, r3, r4, r5, r6, r7;
  for (std::int64_t i = 0; i < k; ++i, a += width, b += width) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = kVectors > 1 ? hn::LoadU(d, b + lanes) : b0;
    const auto b2 = kVectors > 2 ? hn::LoadU(d, b + 2 * lanes) : b0;
    r0.template add_product<kVectors>(a, b0, b1, b2);
    r1.template add_product<kVectors>(a + 1, b0, b1, b2);
    r2.template add_product<kVectors>(a + 2, b0, b1, b2);
    if constexpr (rows > 3) r3.template add_product<kVectors>(a + 3, b0, b1, b2);
    if constexpr (rows > 4) r4.template add_product<kVectors>(a + 4, b0, b1, b2);
    if constexpr (rows > 4) r5.template add_product<kVectors>(a + 5, b0, b1, b2);
    if constexpr (rows > 6) r6.template add_product<kVectors>(a + 6, b0, b1, b2);
    if constexpr (rows > 6) r7.template add_product<kVectors>(a + 7, b0, b1, b2);
  }
  r0.template store<kVectors>(out);
  r1.template store<kVectors>(out + width);
  r2.template store<kVectors>(out + 2 * width);
  if constexpr (rows > 3) r3.template store<kVectors>(out + 3 * width);
  if constexpr (rows > 4) r4.template store<kVectors>(out + 4 * width);
  if constexpr (rows > 4) r5.template store<kVectors>(out + 5 * width);
  if constexpr (rows > 6) r6.template store<kVectors>(out + 6 * width);
  if constexpr (rows > 6) r7.template store<kVectors>(out + 7 * width);
}

/// to[0 … count) += from, in fp64.
template <typename Work>
HWY_INLINE void add_products(const Work* from, std::int64_t count, double* to) {
  const Doubles d;
  constexpr std::int64_t lanes = hn::MaxLanes(Doubles());
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, to + j), load_doubles(d, from + j)), d, to + j);
  }
  for (; j < count; ++j) to[j] += static_cast<double>(from[j]);
}

/// Adds the products of tile rows first … and panel `panel` to the packed triangle.
template <typename Work>
HWY_INLINE void add_tile(const Work* slab, std::int64_t k, std::int64_t columns, std::int64_t first, std::int64_t panel,
                         double* packed) {
  using Shape = TileShape<Work>;
  HWY_ALIGN Work tile[Shape::rows * Shape::width];
  const std::int64_t left = panel * Shape::width;
  const Work* const a = slab + first / Shape::width * Shape::width * k + first % Shape::width;
  const Work* const b = slab + left * k;
  const std::int64_t wanted = std::min(first + Shape::rows, columns) - left;
  if (wanted > 2 * Shape::lanes) {
    multiply_tile<Work, 3>(a, b, k, tile);
  } else if (wanted > Shape::lanes) {
    multiply_tile<Work, 2>(a, b, k, tile);
  } else {
    multiply_tile<Work, 1>(a, b, k, tile);
  }
  const std::int64_t end = std::min(first + Shape::rows, columns);
  for (std::int64_t i = first; i < end; ++i) {
    const std::int64_t count = std::min(Shape::width, i - left + 1);
    if (count > 0) add_products(tile + (i - first) * Shape::width, count, packed + i * (i + 1) / 2 + left);
  }
}

/// packed += WᵀW of a packed slab. Eight panels (which the second-level cache holds) are walked for each tile row, so
/// that the tile row's own columns stay in the first-level cache and come from further away once for eight panels.
template <typename Work>
void add_slab(const Work* slab, std::int64_t k, std::int64_t columns, double* packed) {
  using Shape = TileShape<Work>;
  constexpr std::int64_t panels_at_once = 8;
  const std::int64_t panels = (columns + Shape::width - 1) / Shape::width;
  for (std::int64_t group = 0; group < panels; group += panels_at_once) {
    const std::int64_t group_end = std::min(panels, group + panels_at_once);
    for (std::int64_t first = group * Shape::width; first < columns; first += Shape::rows) {
      for (std::int64_t panel = group; panel < group_end && panel * Shape::width < first + Shape::rows; ++panel) {
        add_tile(slab, k, columns, first, panel, packed);
      }
    }
  }
}

}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
