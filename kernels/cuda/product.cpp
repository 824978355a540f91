#include "kernels/cuda/product.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <stdexcept>

#include "core/cuda_check.hpp"
#include "kernels/cuda/product_kernels.hpp"
#include "kernels/cuda/product_run.hpp"

namespace rowmill {

namespace {

class CudaKernels final : public ProductKernels {
 public:
  explicit CudaKernels(cudaStream_t stream) : stream_(stream) {}

  void clear(void* to, std::size_t bytes) override {
    check_cuda(cudaMemsetAsync(to, 0, bytes, stream_), "cudaMemsetAsync");
  }
  void convert(const ConvertCall& call) override { cuda::convert(call, stream_); }
  void fold(const FoldCall& call) override { cuda::fold(call, stream_); }
  void undo_offset(const OffsetCall& call) override { cuda::undo_offset(call, stream_); }
  void check(const std::uint64_t* greatest, std::int64_t columns, Range range, std::int32_t* flag) override {
    cuda::check_range(greatest, columns, range, flag, stream_);
  }
  void redo(const Block& block, ColumnMap map, const std::int32_t* flag, double* packed) override {
    cuda::redo(block, map, flag, packed, stream_);
  }

 private:
  cudaStream_t stream_;
};

int current_compute_capability() {
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return 10 * major + minor;
}

constexpr std::size_t scratch_alignment = 256;

std::byte* aligned(std::byte* scratch) {
  const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(scratch) % scratch_alignment;
  return beyond == 0 ? scratch : scratch + (scratch_alignment - beyond);
}

}  // namespace

struct CudaProduct::Parts {
  Parts(Backend& b, Queue q)
      : backend(b),
        queue(q),
        compute_capability(current_compute_capability()),
        blas(make_cublas_calls(b, q)),
        kernels(static_cast<cudaStream_t>(b.native(q))) {}

  Backend& backend;
  Queue queue;
  int compute_capability;
  std::int64_t chain_rows = slab_rows;
  ProductLimits limits;
  std::unique_ptr<BlasCalls> blas;
  CudaKernels kernels;
};

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
