// Rows of a block into panels of working values (see syrk-inl.hpp); compiled once for each target.
#if defined(ROWMILL_KERNELS_HOST_PACK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ROWMILL_KERNELS_HOST_PACK_INL_HPP
#undef ROWMILL_KERNELS_HOST_PACK_INL_HPP
#else
#define ROWMILL_KERNELS_HOST_PACK_INL_HPP
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/host/load-inl.hpp"
#include "kernels/host/read_tile.hpp"
#include "kernels/host/syrk-inl.hpp"
#include "kernels/ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {

/// Rows that are packed before the next panel is turned to: few enough that reading goes along whole rows.
constexpr std::int64_t pack_rows = 16;

/// A slab to be packed: `rows` rows of the block from `first_row`; `greatest` gets each column's greatest magnitude
/// before rounding (NaN aside), `greatest` and `panels` are padded to whole panels.
template <typename Work>
struct Packing {
  std::int64_t first_row, rows;
  Work* panels;
  double* greatest;
};

/// The column map of one panel, padded so that columns beyond the last become 0.
template <typename Work>
struct PanelMap {
  static constexpr std::int64_t width = TileShape<Work>::width;
  HWY_ALIGN double shift[width];
  HWY_ALIGN double scale[width];

  PanelMap(const ColumnMap& map, std::int64_t first, std::int64_t count) {
    std::fill_n(shift, width, 0.0);
    std::fill_n(scale, width, 1.0);
    if (map.shift != nullptr) std::copy_n(map.shift + first, count, shift);
    if (map.scale != nullptr) std::copy_n(map.scale + first, count, scale);
  }
};

/// As they lie, float32 to float32.
inline void copy_rows(const float* from, std::int64_t stride, std::int64_t rows, float* to, double* greatest) {
  using Shape = TileShape<float>;
  const Shape::Tag d;
  HWY_ALIGN float seen[Shape::width];
  for (std::int64_t lane = 0; lane < Shape::width; lane += Shape::lanes) {
    auto most = hn::Zero(d);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto x = hn::LoadU(d, from + i * stride + lane);
      most = hn::Max(hn::Abs(x), most);  // in this order a NaN is passed over
      hn::StoreU(x, d, to + i * Shape::width + lane);
    }
    hn::StoreU(most, d, seen + lane);
  }
  for (std::int64_t j = 0; j < Shape::width; ++j) greatest[j] = std::max(greatest[j], static_cast<double>(seen[j]));
}

template <typename Work, typename T>
void map_rows(const T* from, std::int64_t stride, std::int64_t rows, const PanelMap<Work>& map, Work* to,
              double* greatest) {
  const Doubles d;
  constexpr std::int64_t width = TileShape<Work>::width, lanes = hn::MaxLanes(Doubles());
  for (std::int64_t lane = 0; lane < width; lane += lanes) {
    const auto shift = hn::LoadU(d, map.shift + lane), scale = hn::LoadU(d, map.scale + lane);
    auto most = hn::LoadU(d, greatest + lane);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto w = hn::Mul(hn::Sub(load_doubles(d, from + i * stride + lane), shift), scale);
      if constexpr (std::is_same_v<Work, float>) {
        const hn::Rebind<float, Doubles> floats;
        most = hn::Max(hn::Abs(w), most);
        hn::StoreU(hn::DemoteTo(floats, w), floats, to + i * width + lane);
      } else {
        hn::StoreU(w, d, to + i * width + lane);
      }
    }
    hn::StoreU(most, d, greatest + lane);
  }
}

/// Part of a panel by way of a buffer of doubles: any type, and the last panel.
template <typename Work>
void pack_tile(const Block& block, const Tile& tile, const PanelMap<Work>& map, Work* to, double* greatest) {
  constexpr std::int64_t width = TileShape<Work>::width;
  HWY_ALIGN double buffer[pack_rows * width] = {};
  read_tile(block, tile, buffer, width);
  map_rows(static_cast<const double*>(buffer), width, tile.rows, map, to, greatest);
}

/// `plain(tile, map, to, greatest)` packs a whole panel's rows and says so, or does nothing and says so.
template <typename Work, typename Plain>
void pack_panels(const Block& block, const ColumnMap& map, const Packing<Work>& packing, Plain plain) {
  constexpr std::int64_t width = TileShape<Work>::width;
  const std::int64_t columns = column_count(block.x);
  for (std::int64_t row = 0; row < packing.rows; row += pack_rows) {
    const std::int64_t count = std::min(pack_rows, packing.rows - row);
    for (std::int64_t left = 0; left < columns; left += width) {
      const Tile tile{packing.first_row + row, count, left, std::min(width, columns - left)};
      const PanelMap<Work> panel_map(map, left, tile.columns);
      Work* const to = packing.panels + left * packing.rows + row * width;
      double* const greatest = packing.greatest + left;
      if (tile.columns == width && plain(tile, panel_map, to, greatest)) continue;
      pack_tile(block, tile, panel_map, to, greatest);
    }
  }
}

template <typename Work, typename T>
HWY_INLINE void pack_plain(const Block& block, const T* data, const ColumnMap& map, const Packing<Work>& packing) {
  const std::int64_t stride = std::get<DenseRows>(block.x).stride;
  const bool as_it_lies = map.shift == nullptr && map.scale == nullptr;
  pack_panels<Work>(block, map, packing,
                    [&](const Tile& tile, const PanelMap<Work>& panel_map, Work* to, double* greatest) HWY_ATTR {
                      const T* const from = data + tile.first_row * stride + tile.first_column;
                      if constexpr (std::is_same_v<Work, float> && std::is_same_v<T, float>) {
                        if (as_it_lies) return copy_rows(from, stride, tile.rows, to, greatest), true;
                      }
                      return map_rows(from, stride, tile.rows, panel_map, to, greatest), true;
                    });
}

template <typename Work>
void pack_slab(const Block& block, const ColumnMap& map, const Packing<Work>& packing) {
  const std::int64_t width = TileShape<Work>::width;
  std::fill_n(packing.greatest, (column_count(block.x) + width - 1) / width * width, 0.0);
  const auto plain = [&](const auto* data) HWY_ATTR { pack_plain<Work>(block, data, map, packing); };
  if (with_plain_data(block, plain)) return;
  pack_panels<Work>(block, map, packing, [](const auto&...) { return false; });
}

}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
