#include "kernels/cuda/blas_calls.hpp"

#include <cublas_v2.h>

#include <string>

#include "core/error.hpp"

namespace rowmill {

namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ExitCode::device, std::string(call) + " failed: " + cublasGetStatusString(status));
}

/// What cuBLAS calls a factor, a sum and the arithmetic between.
struct Types {
  cudaDataType factor, sum;
  cublasComputeType_t compute;
};

Types types_of(Factor factor) {
  switch (factor) {
    case Factor::f64:
      return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case Factor::f32:  // pedantic: plain float32 products, whatever the environment allows
      return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
    case Factor::tf32:
      return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case Factor::bf16:
      return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case Factor::f16:
      return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case Factor::i8:
      return {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
  }
  throw Error(ExitCode::device, "no such factor");
}

/// 0 or 1 in the type of the sums.
const void* constant_of(Factor factor, bool one) {
  static const double doubles[] = {0, 1};
  static const float floats[] = {0, 1};
  static const std::int32_t integers[] = {0, 1};
  if (factor == Factor::f64) return doubles + one;
  if (factor == Factor::i8) return integers + one;
  return floats + one;
}

class CublasCalls final : public BlasCalls {
 public:
  CublasCalls(Backend& backend, Queue queue) : workspace_(backend, workspace_bytes, queue) {
    check(cublasCreate(&handle_), "cublasCreate");
    try {
      // setting the stream takes the workspace away, so it comes first; a workspace of our own keeps bits the same
      // when several queues work at once
      check(cublasSetStream(handle_, static_cast<cudaStream_t>(backend.native(queue))), "cublasSetStream");
      check(cublasSetWorkspace(handle_, workspace_.data(), workspace_bytes), "cublasSetWorkspace");
      check(cublasSetAtomicsMode(handle_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
      // parts of a split product are added in float32, never in the type of the factors
      check(cublasSetMathMode(handle_, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION), "cublasSetMathMode");
    } catch (...) {
      cublasDestroy(handle_);
      throw;
    }
  }
  CublasCalls(const CublasCalls&) = delete;
  CublasCalls& operator=(const CublasCalls&) = delete;
  ~CublasCalls() override { cublasDestroy(handle_); }

  void gemm(const GemmCall& call) override {
    const Types types = types_of(call.factor);
    check(cublasGemmStridedBatchedEx_64(
              handle_, call.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, call.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
              call.m, call.n, call.k, constant_of(call.factor, true), call.a, types.factor, call.lda, call.stride_a,
              call.b, types.factor, call.ldb, call.stride_b, constant_of(call.factor, call.add), call.c, types.sum,
              call.ldc, call.stride_c, call.batch, types.compute, CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  }

  void syrk(const SyrkCall& call) override {
    const double one = 1, zero = 0;
    check(cublasDsyrk_64(handle_, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, call.n, call.k, &one,
                         reinterpret_cast<const double*>(call.a), call.lda, &zero, reinterpret_cast<double*>(call.c),
                         call.ldc),
          "cublasDsyrk");
  }

 private:
  /// What NVIDIA advises for compute capability 9.0 (cuBLAS documentation, cublasSetWorkspace); plenty for others.
  static constexpr std::size_t workspace_bytes = 32 << 20;

  DeviceBuffer workspace_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<BlasCalls> make_cublas_calls(Backend& backend, Queue queue) {
  return std::make_unique<CublasCalls>(backend, queue);
}

}  // namespace rowmill
