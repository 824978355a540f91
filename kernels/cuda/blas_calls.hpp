#pragma once
// The calls of a vendor's BLAS that products make, and nothing else of it. Column-major, as BLAS is; elements count
// from the pointers given; 64-bit sizes. No CUDA header.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/backend.hpp"

namespace rowmill {

/// What factors are stored as. tf32 lies in float32. Products of i8 are summed in int32, of f64 in f64, of others in
/// f32.
enum class Factor : std::uint8_t { f64, f32, tf32, bf16, f16, i8 };

constexpr std::int64_t bytes_of(Factor factor) {
  switch (factor) {
    case Factor::f64:
      return 8;
    case Factor::f32:
    case Factor::tf32:
      return 4;
    case Factor::bf16:
    case Factor::f16:
      return 2;
    case Factor::i8:
      return 1;
  }
  return 0;
}
constexpr std::int64_t sum_bytes_of(Factor factor) {
  return factor == Factor::f64 ? 8 : 4;
}

/// C[b] = op(A[b]) op(B[b]) (+ C[b] if `add`) for b in [0, batch): op(A) is m × k, op(B) k × n, C m × n.
struct GemmCall {
  Factor factor = Factor::f64;
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  const std::byte* a = nullptr;
  std::int64_t lda = 0, stride_a = 0;
  const std::byte* b = nullptr;
  std::int64_t ldb = 0, stride_b = 0;
  bool add = false;
  std::byte* c = nullptr;
  std::int64_t ldc = 0, stride_c = 0;
  std::int64_t batch = 1;
};

/// The upper triangle of C = A Aᵀ in fp64: A is n × k.
struct SyrkCall {
  std::int64_t n = 0, k = 0;
  const std::byte* a = nullptr;
  std::int64_t lda = 0;
  std::byte* c = nullptr;
  std::int64_t ldc = 0;
};

class BlasCalls {
 public:
  virtual ~BlasCalls() = default;
  virtual void gemm(const GemmCall& call) = 0;
  virtual void syrk(const SyrkCall& call) = 0;
};

/// cuBLAS on a queue of a CUDA backend, with a handle and a workspace of its own. In the CUDA module only. Throws
/// Error(device), naming the call.
std::unique_ptr<BlasCalls> make_cublas_calls(Backend& backend, Queue queue);

}  // namespace rowmill
