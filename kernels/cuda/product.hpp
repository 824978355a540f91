#pragma once
// WᵀW of a block on a GPU: the operation cross_product, with what it needs on one queue. No CUDA header.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/backend.hpp"
#include "core/block.hpp"
#include "kernels/ops.hpp"

namespace rowmill {

/// One a queue, used by one thread at a time. The backend is CUDA's and outlives it; the queue's device is the calling
/// thread's current one in all calls.
struct CudaProduct {
  static bool offers(Precision precision, ElementType type);
  static std::size_t scratch_bytes(ElementType type, std::int64_t columns, Precision precision);

  /// Makes a cuBLAS handle and takes its workspace. Throws Error(device).
  CudaProduct(Backend& backend, Queue queue);
  CudaProduct(const CudaProduct&) = delete;
  CudaProduct& operator=(const CudaProduct&) = delete;
  ~CudaProduct();

  /// Takes note of the rows of blocks and chains, and runs once all kernels and library calls that blocks of at most so
  /// many rows make, in fp64 too. Waits.
  void prepare(const BlockShape& shape);

  /// See Ops::cross_product. Only queues. Throws std::logic_error for a longer block.
  void run(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed);

 private:
  void launch_all_kernels(const BlockShape& shape, Precision precision, std::byte* scratch);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rowmill
