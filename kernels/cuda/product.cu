#include "kernels/cuda/product.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/error.hpp"
#include "kernels/cuda/product_bodies.hpp"
#include "kernels/cuda/product_load.cuh"
#include "kernels/cuda/product_run.hpp"

namespace rowmill {

namespace cuda {
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
__device__ void load_values(const StoredRows& rows, const Conversion& c, std::int64_t row, std::int64_t column,
                            double (&values)[kCount]) {
  const bool inside = row < c.rows;
  if (inside && c.wide && column + kCount <= rows.columns) {
    const std::uint8_t* const from = rows.data + ((c.first_row + row) * rows.stride + column) * kBytes;
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
      std::uint64_t bits;
      if constexpr (kBytes == 8) {
        bits = words[2 * v] | static_cast<std::uint64_t>(words[2 * v + 1]) << 32;
      } else if constexpr (kBytes == 4) {
        bits = words[v];
      } else {
        bits = (words[v / each] >> (8 * kBytes * (v % each))) & ((1u << (8 * kBytes)) - 1);
      }
      values[v] = value_of<kBytes>(rows.dtype, rows.swapped, bits);
    }
    return;
  }
#pragma unroll
  for (int v = 0; v < kCount; ++v) {
    values[v] = 0;
    if (!inside || column + v >= rows.columns) continue;
    const std::int64_t at = c.first_row + row;
    values[v] = masked(rows, at, column + v) ? not_a_number() : stored_value<kBytes>(rows, at, column + v);
  }
}

/// Row-major factors of one precision. One block a multiprocessor is enough, so that no register is spilled for more. A
/// thread makes a few stored elements of a row into factors, and goes down its tile's rows with the greatest magnitudes
/// in registers.
template <int kBytes, Precision kPrecision>
__global__ void __launch_bounds__(lanes* convert_lines, 1) convert_to_rows(const StoredRows rows, const Conversion c) {
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
    convert_to_columns(const StoredRows rows, const Conversion c, std::int32_t* flag) {
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
        value = stored_value<1>(rows, at, column) - (rows.dtype == DType::u8 ? 128.0 : 0.0);
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

constexpr int fold_width = 256;

/// One thread an entry: its slabs in ascending order.
template <typename Sum>
__global__ void __launch_bounds__(fold_width, 1)
    fold_slabs(const Panel panel, std::int64_t slab_elements, std::int64_t columns, const Sum* sums, std::int64_t slabs,
               bool first, double* packed, double* column_sums) {
  const std::int64_t i = panel.first + blockIdx.y;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * fold_width + threadIdx.x;
  if (j > i) return;
  double* const to = (i == columns ? column_sums : packed + i * (i + 1) / 2) + j;
  const Sum* from = sums + blockIdx.y * panel.leading + j;
  double sum = first ? 0.0 : *to;
  for (std::int64_t slab = 0; slab < slabs; ++slab, from += slab_elements) sum += static_cast<double>(*from);
  *to = sum;
}

__global__ void __launch_bounds__(fold_width, 1) undo_offsets(const OffsetCall call) {
  const std::int64_t i = blockIdx.x;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.y) * fold_width + threadIdx.x;
  if (j > i) return;
  double* const entry = call.packed + i * (i + 1) / 2 + j;
  *entry = offset_undone(call, *entry, i, j);
}

__global__ void __launch_bounds__(fold_width, 1)
    check_ranges(const std::uint64_t* greatest, std::int64_t columns, const Range range, std::int32_t* flag) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * fold_width + threadIdx.x;
  if (j < columns && !fits_range(greatest[j], range)) *flag = 1;
}

constexpr int redo_tile = 32, redo_rows = 16, redo_lines = 8, redo_blocks = 1024;

/// A tile's number among those on and below the diagonal, row by row, to its place.
__device__ void tile_place(std::int64_t tile, std::int64_t& i, std::int64_t& j) {
  i = static_cast<std::int64_t>((sqrt(8.0 * static_cast<double>(tile) + 1) - 1) / 2);
  while (i * (i + 1) / 2 > tile) --i;
  while ((i + 1) * (i + 2) / 2 <= tile) ++i;
  j = tile - i * (i + 1) / 2;
}

__device__ double working_value(const StoredRows& rows, const ColumnMap& map, std::int64_t row, std::int64_t column) {
  if (row >= rows.rows || column >= rows.columns) return 0;
  double w = any_value(rows, row, column);
  if (map.shift != nullptr) w -= map.shift[column];
  if (map.scale != nullptr) w *= map.scale[column];
  return w;
}

/// Where the flag is set: the whole product in fp64, rows in ascending order. For blocks that do not fit their
/// precision, which are rare: simple rather than fast.
__global__ void __launch_bounds__(redo_tile* redo_lines, 1)
    redo_in_double(const StoredRows rows, const ColumnMap map, const std::int32_t* flag, double* packed) {
  if (*flag == 0) return;
  __shared__ double left[redo_rows][redo_tile], right[redo_rows][redo_tile];
  const std::int64_t across = (rows.columns + redo_tile - 1) / redo_tile;
  for (std::int64_t tile = blockIdx.x; tile < across * (across + 1) / 2; tile += gridDim.x) {
    std::int64_t tile_i, tile_j;
    tile_place(tile, tile_i, tile_j);
    const std::int64_t first_i = tile_i * redo_tile, first_j = tile_j * redo_tile;
    double sums[redo_tile / redo_lines] = {};
    for (std::int64_t row = 0; row < rows.rows; row += redo_rows) {
      __syncthreads();
      for (int r = static_cast<int>(threadIdx.y); r < redo_rows; r += redo_lines) {
        left[r][threadIdx.x] = working_value(rows, map, row + r, first_i + threadIdx.x);
        right[r][threadIdx.x] = working_value(rows, map, row + r, first_j + threadIdx.x);
      }
      __syncthreads();
      for (int r = 0; r < redo_rows; ++r) {
#pragma unroll
        for (int k = 0; k < redo_tile / redo_lines; ++k) {
          sums[k] += left[r][threadIdx.y + k * redo_lines] * right[r][threadIdx.x];
        }
      }
    }
#pragma unroll
    for (int k = 0; k < redo_tile / redo_lines; ++k) {
      const std::int64_t i = first_i + threadIdx.y + k * redo_lines, j = first_j + threadIdx.x;
      if (i < rows.columns && j <= i) packed[i * (i + 1) / 2 + j] = sums[k];
    }
  }
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw Error(ExitCode::device, std::string(what) + " failed: " + cudaGetErrorString(error));
}

std::int64_t parts_of(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}
dim3 grid(std::int64_t x, std::int64_t y = 1) {
  return {static_cast<unsigned>(x), static_cast<unsigned>(y), 1};
}

bool starts_at_16_bytes(const StoredRows& rows, std::int64_t bytes) {
  return rows.index == nullptr && rows.mask == nullptr && reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 &&
         rows.stride * bytes % 16 == 0;
}

class CudaKernels final : public ProductKernels {
 public:
  explicit CudaKernels(cudaStream_t stream) : stream_(stream) {}

  void clear(void* to, std::size_t bytes) override { check(cudaMemsetAsync(to, 0, bytes, stream_), "cudaMemsetAsync"); }

  void convert(const ConvertCall& call) override {
    const StoredRows rows = stored_rows(*call.block);
    const auto bytes = static_cast<std::int64_t>(size_of(element_type(call.block->x)));
    Conversion c{work_shape(*call.plan),
                 call.first_row,
                 call.rows,
                 call.slabs * call.plan->slab_rows,
                 call.map,
                 call.work,
                 reinterpret_cast<unsigned long long*>(call.greatest),
                 starts_at_16_bytes(rows, bytes)};
    if (call.plan->precision == Precision::int8) {
      const dim3 blocks = grid(parts_of(c.all_rows, tile_rows), parts_of(c.shape.leading, lanes));
      convert_to_columns<<<blocks, dim3(lanes, convert_lines), 0, stream_>>>(rows, c, call.flag);
      check(cudaGetLastError(), "conversion to int8");
      return;
    }
    switch (bytes) {
      case 1:
        return convert_to<1>(call.plan->precision, rows, c);
      case 2:
        return convert_to<2>(call.plan->precision, rows, c);
      case 4:
        return convert_to<4>(call.plan->precision, rows, c);
      default:
        return convert_to<8>(call.plan->precision, rows, c);
    }
  }

  void fold(const FoldCall& call) override {
    switch (call.plan->factor) {
      case Factor::f64:
        return fold_as<double>(call);
      case Factor::i8:
        return fold_as<std::int32_t>(call);
      default:
        return fold_as<float>(call);
    }
  }

  void undo_offset(const OffsetCall& call) override {
    undo_offsets<<<grid(call.columns, parts_of(call.columns, fold_width)), fold_width, 0, stream_>>>(call);
    check(cudaGetLastError(), "correction of offsets");
  }

  void check(const std::uint64_t* greatest, std::int64_t columns, Range range, std::int32_t* flag) override {
    check_ranges<<<grid(parts_of(columns, fold_width)), fold_width, 0, stream_>>>(greatest, columns, range, flag);
    check(cudaGetLastError(), "check of ranges");
  }

  void redo(const Block& block, ColumnMap map, const std::int32_t* flag, double* packed) override {
    const std::int64_t across = parts_of(column_count(block.x), redo_tile);
    const std::int64_t blocks = std::min<std::int64_t>(redo_blocks, across * (across + 1) / 2);
    redo_in_double<<<grid(blocks), dim3(redo_tile, redo_lines), 0, stream_>>>(stored_rows(block), map, flag, packed);
    check(cudaGetLastError(), "product in fp64");
  }

 private:
  static void check(cudaError_t error, const char* what) { cuda::check(error, what); }

  template <int kBytes>
  void convert_to(Precision precision, const StoredRows& rows, const Conversion& c) {
    switch (precision) {
      case Precision::fp64:
        return launch<kBytes, Precision::fp64>(rows, c);
      case Precision::fp32:
        return launch<kBytes, Precision::fp32>(rows, c);
      case Precision::tf32:
        return launch<kBytes, Precision::tf32>(rows, c);
      case Precision::bf16:
        return launch<kBytes, Precision::bf16>(rows, c);
      case Precision::fp16:
        return launch<kBytes, Precision::fp16>(rows, c);
      default:
        if constexpr (kBytes > 1) return launch<kBytes, Precision::bf16x3>(rows, c);
        throw std::logic_error("bytes are not multiplied so: offers_product");
    }
  }

  template <int kBytes, Precision kPrecision>
  void launch(const StoredRows& rows, const Conversion& c) {
    const dim3 blocks =
        grid(parts_of(c.all_rows, convert_rows), parts_of(c.shape.leading, lanes * values_at_once<kBytes>));
    convert_to_rows<kBytes, kPrecision><<<blocks, dim3(lanes, convert_lines), 0, stream_>>>(rows, c);
    check(cudaGetLastError(), "conversion");
  }

  template <typename Sum>
  void fold_as(const FoldCall& call) {
    const dim3 blocks = grid(parts_of(call.panel.end(), fold_width), call.panel.count);
    fold_slabs<Sum><<<blocks, fold_width, 0, stream_>>>(call.panel, call.panel.elements(), call.plan->columns,
                                                        reinterpret_cast<const Sum*>(call.sums), call.slabs, call.first,
                                                        call.packed, call.column_sums);
    check(cudaGetLastError(), "sum of slabs");
  }

  cudaStream_t stream_;
};

int compute_capability() {
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return 10 * major + minor;
}

}  // namespace
}  // namespace cuda

struct CudaProduct::Parts {
  Parts(Backend& b, Queue q)
      : backend(b),
        queue(q),
        compute_capability(cuda::compute_capability()),
        blas(make_cublas_calls(b, q)),
        kernels(static_cast<cudaStream_t>(b.native(q))) {}

  Backend& backend;
  Queue queue;
  int compute_capability;
  std::int64_t chain_rows = slab_rows;
  ProductLimits limits;
  std::unique_ptr<BlasCalls> blas;
  cuda::CudaKernels kernels;
};

namespace {

constexpr std::size_t scratch_alignment = 256;

std::byte* aligned(std::byte* scratch) {
  const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(scratch) % scratch_alignment;
  return beyond == 0 ? scratch : scratch + (scratch_alignment - beyond);
}

}  // namespace

bool CudaProduct::offers(Precision precision, ElementType type) {
  return offers_product(precision, type);
}

std::size_t CudaProduct::scratch_bytes(ElementType, std::int64_t columns, Precision precision) {
  return static_cast<std::size_t>(product_scratch(columns, precision).total) + scratch_alignment;
}

CudaProduct::CudaProduct(Backend& backend, Queue queue) : parts_(std::make_unique<Parts>(backend, queue)) {}

CudaProduct::~CudaProduct() = default;

void CudaProduct::prepare(const BlockShape& shape) {
  parts_->chain_rows = shape.chain_rows;
  parts_->limits.rows = shape.rows;
  if (!shape.product) return;
  for (const Precision precision : {*shape.product, Precision::fp64}) {
    const DeviceBuffer scratch(parts_->backend, scratch_bytes(shape.type, shape.columns, precision), parts_->queue);
    launch_all_kernels(shape, precision, scratch.data());
    call_all_shapes(shape.type, shape.columns, {precision, shape.chain_rows}, aligned(scratch.data()), *parts_->blas,
                    parts_->limits);
    parts_->backend.wait_host(parts_->backend.record(parts_->queue));
  }
}

/// On a few zeros: kernels are loaded whole, whatever the shape.
void CudaProduct::launch_all_kernels(const BlockShape& shape, Precision precision, std::byte* scratch) {
  Backend& backend = parts_->backend;
  const Queue queue = parts_->queue;
  const std::int64_t rows = std::min<std::int64_t>(shape.rows, 16), columns = std::min<std::int64_t>(shape.columns, 64);
  const auto bytes = static_cast<std::size_t>(rows * columns) * size_of(shape.type);
  const DeviceBuffer zeros(backend, bytes, queue);
  backend.clear(zeros.data(), bytes, queue);
  const DeviceBuffer packed(backend, static_cast<std::size_t>(columns * (columns + 1) / 2) * sizeof(double), queue);
  Block block;
  block.range.count = rows;
  block.x = DenseRows{zeros.data(), shape.type, rows, columns, columns};
  run_product(block, {}, {precision, shape.chain_rows}, parts_->compute_capability, aligned(scratch),
              reinterpret_cast<double*>(packed.data()), parts_->kernels, *parts_->blas);
}

void CudaProduct::run(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed) {
  if (row_count(block.x) > parts_->limits.rows) {
    throw std::logic_error("a block is longer than its queue was prepared for");
  }
  run_product(block, map, {precision, parts_->chain_rows}, parts_->compute_capability,
              aligned(static_cast<std::byte*>(scratch)), packed, parts_->kernels, *parts_->blas, parts_->limits);
}

}  // namespace rowmill
