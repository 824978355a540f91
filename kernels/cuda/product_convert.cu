// Rows of a block to the factors that a library multiplies.
#include <stdexcept>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product_bodies.hpp"
#include "kernels/cuda/product_kernels.hpp"
#include "kernels/cuda/product_load.cuh"

namespace rowmill::cuda {

namespace {

/// The part of a batch that convert kernels write, and where from.
struct Conversion {
  WorkShape shape;
  std::int64_t first_row = 0, rows = 0;  ///< of the block
  std::int64_t all_rows = 0;             ///< rows and what lies behind them in the last slab
  ColumnMap map;
  std::byte* work = nullptr;
  unsigned long long* greatest = nullptr;
  bool wide = false;  ///< dense rows that begin at multiples of 16 bytes, without a mask
};

// launch bounds say "one block at least": without it ptxas keeps to fewer registers than there are, and spills
constexpr int lanes = 32, convert_lines = 8, convert_rows = 64;

/// Stored elements that a thread loads at once: 16 bytes; of single bytes 8, since the factors of 16 columns do not fit
/// in registers.
template <int kBytes>
constexpr int values_at_once = kBytes == 1 ? 8 : 16 / kBytes;

/// kCount factors side by side, stored at once.
template <typename Stored, int kCount>
struct alignas(sizeof(Stored) * kCount < 16 ? sizeof(Stored) * kCount : 16) Pack {
  Stored values[kCount];
};

template <Precision kPrecision>
struct StoredFactor {
  using type = std::uint16_t;
};
template <>
struct StoredFactor<Precision::fp64> {
  using type = double;
};
template <>
struct StoredFactor<Precision::fp32> {
  using type = float;
};
template <>
struct StoredFactor<Precision::tf32> {
  using type = float;
};

/// The values of kCount columns of a row, padding included.
template <int kBytes, int kCount>
__device__ void load_values(const AnyRows& rows, const Conversion& c, std::int64_t row, std::int64_t column,
                            double (&values)[kCount]) {
  const bool inside = row < c.rows;
  if (inside && c.wide && column + kCount <= rows.columns) {
    const std::byte* const from = rows.data + ((c.first_row + row) * rows.stride + column) * kBytes;
    std::uint32_t words[4] = {};
    if constexpr (kBytes * kCount == 16) {
      const uint4 all = *reinterpret_cast<const uint4*>(from);
      words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
    } else {
      const uint2 all = *reinterpret_cast<const uint2*>(from);
      words[0] = all.x, words[1] = all.y;
    }
#pragma unroll
    for (int v = 0; v < kCount; ++v) {
      constexpr int each = kBytes < 4 ? 4 / kBytes : 1;
      if constexpr (kBytes == 8) {
        values[v] = value_of<8>(rows.type, words[2 * v] | static_cast<std::uint64_t>(words[2 * v + 1]) << 32);
      } else {
        values[v] =
            value_of<kBytes>(rows.type, static_cast<BitsOf<kBytes>>(words[v / each] >> (8 * kBytes * (v % each))));
      }
    }
    return;
  }
#pragma unroll
  for (int v = 0; v < kCount; ++v) {
    values[v] = 0;
    if (!inside || column + v >= rows.columns) continue;
    const std::int64_t at = c.first_row + row;
    values[v] = masked(rows, at, column + v) ? functors::not_a_number() : stored_value<kBytes>(rows, at, column + v);
  }
}

/// Row-major factors of one precision. One block a multiprocessor is enough, so that no register is spilled for more. A
/// thread makes a few stored elements of a row into factors, and goes down its tile's rows with the greatest magnitudes
/// in registers.
template <int kBytes, Precision kPrecision>
__global__ void __launch_bounds__(lanes* convert_lines, 1) convert_to_rows(const AnyRows rows, const Conversion c) {
  using Stored = typename StoredFactor<kPrecision>::type;
  constexpr int count = values_at_once<kBytes>;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * lanes + threadIdx.x) * count;
  if (column >= c.shape.leading) return;
  const bool whole = column + count <= c.shape.leading;
  double greatest[count] = {};
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * convert_rows;
  const std::int64_t end = min(first + convert_rows, c.all_rows);
  for (std::int64_t row = first + threadIdx.y; row < end; row += convert_lines) {
    double w[count];
    load_values<kBytes, count>(rows, c, row, column, w);
    const Placed placed = place_in_rows(c.shape, row, column);
    constexpr int copies = kPrecision == Precision::bf16x3 ? 2 : 1;
    Pack<Stored, count> packs[copies];
#pragma unroll
    for (int v = 0; v < count; ++v) {
      if (row < c.rows && column + v < rows.columns) {
        if (c.map.shift != nullptr) w[v] -= c.map.shift[column + v];
        if (c.map.scale != nullptr) w[v] *= c.map.scale[column + v];
        if (fabs(w[v]) > greatest[v]) greatest[v] = fabs(w[v]);  // not so for NaN
      }
      if constexpr (kPrecision == Precision::bf16x3) {
        const TwoBf16 parts = split_bf16(w[v]);
        packs[0].values[v] = bf16_bits(parts.low);
        packs[1].values[v] = bf16_bits(parts.high);
      } else {
        store_factor<kPrecision>(w[v], reinterpret_cast<std::byte*>(packs[0].values), {v, 0});
      }
    }
    auto* const to = reinterpret_cast<Stored*>(c.work) + placed.at;
#pragma unroll
    for (int copy = 0; copy < (copies == 1 ? 1 : 4); ++copy) {
      const Pack<Stored, count>& pack = packs[copies > 1 && copy == high_copy ? 1 : 0];
      if (whole) {
        *reinterpret_cast<Pack<Stored, count>*>(to + copy * placed.copy) = pack;
      } else {
#pragma unroll
        for (int v = 0; v < count; ++v) {
          if (column + v < c.shape.leading) to[copy * placed.copy + v] = pack.values[v];
        }
      }
    }
  }
  if (c.greatest == nullptr) return;
#pragma unroll
  for (int v = 0; v < count; ++v) {
    if (greatest[v] > 0) atomicMax(c.greatest + column + v, same_bits<unsigned long long>(greatest[v]));
  }
}

constexpr int tile_rows = 128;

/// Column-major int8 factors: tiles of 128 rows × 32 columns are turned over in shared memory, so that both reads and
/// writes run along the memory.
__global__ void __launch_bounds__(lanes* convert_lines, 1)
    convert_to_columns(const AnyRows rows, const Conversion c, std::int32_t* flag) {
  __shared__ __align__(4) std::int8_t tile[lanes][tile_rows + 4];
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.y) * lanes;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * tile_rows;
  const std::int64_t column = first_column + threadIdx.x;
  bool missing = false;
  for (int r = static_cast<int>(threadIdx.y); r < tile_rows; r += convert_lines) {
    const std::int64_t row = first_row + r;
    double value = 0;
    if (row < c.rows && column < rows.columns) {
      const std::int64_t at = c.first_row + row;
      if (masked(rows, at, column)) {
        missing = true;
      } else {
        value = stored_value<1>(rows, at, column) - (rows.type.dtype == DType::u8 ? 128.0 : 0.0);
      }
    } else if (row < c.rows && column == rows.columns) {
      value = 1;
    }
    tile[threadIdx.x][r] = static_cast<std::int8_t>(value);
  }
  if (missing) *flag = 1;
  __syncthreads();
  const std::int64_t row = first_row + 4 * static_cast<int>(threadIdx.x);
  for (int j = static_cast<int>(threadIdx.y); j < lanes; j += convert_lines) {
    if (first_column + j >= c.shape.leading || row >= c.all_rows) continue;
    const Placed placed = place_in_columns(c.shape, row, first_column + j);
    *reinterpret_cast<std::uint32_t*>(c.work + placed.at) =
        *reinterpret_cast<const std::uint32_t*>(&tile[j][4 * threadIdx.x]);
  }
}

bool starts_at_16_bytes(const AnyRows& rows) {
  return rows.row_start == nullptr && rows.mask == nullptr && reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 &&
         rows.stride * rows.element_bytes % 16 == 0;
}

template <int kBytes, Precision kPrecision>
void launch(const AnyRows& rows, const Conversion& c, cudaStream_t stream) {
  const dim3 blocks(blocks_for(c.all_rows, convert_rows), blocks_for(c.shape.leading, lanes * values_at_once<kBytes>));
  convert_to_rows<kBytes, kPrecision><<<blocks, dim3(lanes, convert_lines), 0, stream>>>(rows, c);
  check_cuda(cudaGetLastError(), "conversion");
}

template <int kBytes>
void convert_to(Precision precision, const AnyRows& rows, const Conversion& c, cudaStream_t stream) {
  switch (precision) {
    case Precision::fp64:
      return launch<kBytes, Precision::fp64>(rows, c, stream);
    case Precision::fp32:
      return launch<kBytes, Precision::fp32>(rows, c, stream);
    case Precision::tf32:
      return launch<kBytes, Precision::tf32>(rows, c, stream);
    case Precision::bf16:
      return launch<kBytes, Precision::bf16>(rows, c, stream);
    case Precision::fp16:
      return launch<kBytes, Precision::fp16>(rows, c, stream);
    default:
      if constexpr (kBytes > 1) return launch<kBytes, Precision::bf16x3>(rows, c, stream);
      throw std::logic_error("bytes are not multiplied so: offers_product");
  }
}

}  // namespace

void convert(const ConvertCall& call, cudaStream_t stream) {
  const AnyRows rows = functors::any_rows(*call.block);
  const Conversion c{work_shape(*call.plan),
                     call.first_row,
                     call.rows,
                     call.slabs * call.plan->slab_rows,
                     call.map,
                     call.work,
                     reinterpret_cast<unsigned long long*>(call.greatest),
                     starts_at_16_bytes(rows)};
  if (call.plan->precision == Precision::int8) {
    const dim3 blocks(blocks_for(c.all_rows, tile_rows), blocks_for(c.shape.leading, lanes));
    convert_to_columns<<<blocks, dim3(lanes, convert_lines), 0, stream>>>(rows, c, call.flag);
    check_cuda(cudaGetLastError(), "conversion to int8");
    return;
  }
  switch (rows.element_bytes) {
    case 1:
      return convert_to<1>(call.plan->precision, rows, c, stream);
    case 2:
      return convert_to<2>(call.plan->precision, rows, c, stream);
    case 4:
      return convert_to<4>(call.plan->precision, rows, c, stream);
    default:
      return convert_to<8>(call.plan->precision, rows, c, stream);
  }
}

}  // namespace rowmill::cuda
