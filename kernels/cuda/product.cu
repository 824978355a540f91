#include "core/error.hpp"
#include "kernels/cuda/product.hpp"

namespace rowmill {

bool CudaProduct::offers(Precision, ElementType) {
  return false;
}
std::size_t CudaProduct::scratch_bytes(ElementType, std::int64_t, Precision) {
  return 0;
}
CudaProduct::CudaProduct(Backend&, Queue) {}
CudaProduct::~CudaProduct() = default;
void CudaProduct::prepare(const BlockShape&) {}
void CudaProduct::run(const Block&, ColumnMap, Precision, void*, double*) {
  throw Error(ExitCode::device, "not built yet");
}

}  // namespace rowmill
