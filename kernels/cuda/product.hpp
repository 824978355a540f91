#pragma once
// cross_product on a GPU.
#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"
#include "core/block.hpp"
#include "kernels/ops.hpp"

namespace rowmill {

/// The product of one queue. run() queues only.
class CudaProduct {
 public:
  static bool offers(Precision precision, ElementType type);
  static std::size_t scratch_bytes(ElementType type, std::int64_t columns, Precision precision);

  CudaProduct(Backend& backend, Queue queue);
  CudaProduct(const CudaProduct&) = delete;
  CudaProduct& operator=(const CudaProduct&) = delete;
  ~CudaProduct();

  void prepare(const BlockShape& shape);
  void run(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed);
};

}  // namespace rowmill
