#pragma once
// What operations of one queue need besides their arguments.
#include <cstddef>
#include <optional>

#include "core/backend.hpp"
#include "kernels/cuda/product.hpp"
#include "kernels/ops.hpp"

namespace rowmill::cuda {

/// Used by one queue only. Grows in prepare() and nowhere else.
class Workspace {
 public:
  Workspace(Backend& backend, Queue queue) : backend_(backend), queue_(queue) {}

  /// Takes memory for blocks of this shape. Does not run anything of its own; the product may.
  void prepare(const BlockShape& shape);

  /// Throw std::logic_error for blocks that were not prepared for.
  std::byte* columns_of(const Block& block) const;
  int* gate() const;
  CudaProduct& product();

 private:
  Backend& backend_;
  Queue queue_;
  DeviceBuffer gate_, columns_;
  std::optional<CudaProduct> product_;
};

}  // namespace rowmill::cuda
