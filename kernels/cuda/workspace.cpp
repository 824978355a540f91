#include "kernels/cuda/workspace.hpp"

#include <stdexcept>

#include "kernels/cuda/kernels.hpp"

namespace rowmill::cuda {

void Workspace::prepare(const BlockShape& shape) {
  if (gate_.data() == nullptr) gate_ = DeviceBuffer(backend_, sizeof(int), queue_);
  const std::size_t bytes = column_scratch(shape.rows, shape.columns);
  if (bytes > columns_.size()) columns_ = DeviceBuffer(backend_, bytes, queue_);
  if (!shape.product) return;
  if (!product_) product_.emplace(backend_, queue_);
  product_->prepare(shape);
}

std::byte* Workspace::columns_of(const Block& block) const {
  if (column_scratch(row_count(block.x), column_count(block.x)) > columns_.size()) {
    throw std::logic_error("a block is larger than its queue was prepared for");
  }
  return columns_.data();
}

int* Workspace::gate() const {
  return reinterpret_cast<int*>(gate_.data());
}

CudaProduct& Workspace::product() {
  if (!product_) throw std::logic_error("the queue was not prepared for products");
  return *product_;
}

}  // namespace rowmill::cuda
