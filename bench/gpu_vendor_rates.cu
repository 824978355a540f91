// The limits that a GPU run is measured against: bus, device memory, cuBLAS; and how far tensor cores truncate.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "bench/gpu_bench.hpp"

namespace rowmill::bench {

namespace {

constexpr int samples = 9;

/// A generator that needs no state: the mixing step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
__host__ __device__ inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <typename T>
__global__ void fill_floating(T* to, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const auto bits = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(i)) >> 11);
    to[i] = static_cast<T>(static_cast<double>(bits) * 0x1p-52 - 1.0);
  }
}

__global__ void fill_bytes(std::uint8_t* to, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = static_cast<std::uint8_t>(mixed(static_cast<std::uint64_t>(i)));
  }
}

template <typename From>
__global__ void widen(double* to, const From* from, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = static_cast<double>(static_cast<float>(from[i]));
  }
}

/// Rounds float32 to the 10 bits behind the point that tf32 keeps, so that the sum to compare with has the same terms.
__global__ void round_to_tf32(float* values, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    values[i] = __uint_as_float((__float_as_uint(values[i]) + 0x1000U) & 0xffffe000U);
  }
}

constexpr int blocks = 1024, threads = 256;

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A handle with a workspace of its own, as the module uses it.
class Blas {
 public:
  explicit Blas(cudaStream_t stream) : workspace_(std::size_t{32} << 20) {
    check(cublasCreate(&handle_), "cublasCreate");
    check(cublasSetStream(handle_, stream), "cublasSetStream");
    check(cublasSetWorkspace(handle_, workspace_.as(), std::size_t{32} << 20), "cublasSetWorkspace");
  }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  ~Blas() { cublasDestroy(handle_); }
  cublasHandle_t get() const { return handle_; }

 private:
  DeviceMemory workspace_;
  cublasHandle_t handle_ = nullptr;
};

std::string size_name(std::size_t bytes) {
  const std::size_t kib = bytes >> 10;
  return kib < 1024 ? std::to_string(kib) + "KiB" : std::to_string(kib >> 10) + "MiB";
}

void measure_copies(Report& report) {
  constexpr std::size_t largest = std::size_t{256} << 20;
  const Stream stream;
  const DeviceMemory device(largest);
  void* pinned = nullptr;
  check(cudaHostAlloc(&pinned, largest, cudaHostAllocDefault), "cudaHostAlloc");
  const std::unique_ptr<void, void (*)(void*)> owner(pinned, [](void* memory) { cudaFreeHost(memory); });
  for (std::size_t bytes = std::size_t{64} << 10; bytes <= largest; bytes *= 4) {
    const double down = median_seconds(stream.get(), samples, [&] {
      check(cudaMemcpyAsync(device.as(), pinned, bytes, cudaMemcpyHostToDevice, stream.get()), "copy to the device");
    });
    const double up = median_seconds(stream.get(), samples, [&] {
      check(cudaMemcpyAsync(pinned, device.as(), bytes, cudaMemcpyDeviceToHost, stream.get()), "copy from the device");
    });
    report.add("h2d_" + size_name(bytes), static_cast<double>(bytes) / down / 1e9, "GB/s");
    report.add("d2h_" + size_name(bytes), static_cast<double>(bytes) / up / 1e9, "GB/s");
  }
}

void measure_device_copy(Report& report) {
  constexpr std::size_t bytes = std::size_t{2} << 30;
  const Stream stream;
  const DeviceMemory from(bytes), to(bytes);
  const double seconds = median_seconds(stream.get(), samples, [&] {
    check(cudaMemcpyAsync(to.as(), from.as(), bytes, cudaMemcpyDeviceToDevice, stream.get()), "copy on the device");
  });
  report.add("device_copy_read_and_written", 2.0 * static_cast<double>(bytes) / seconds / 1e9, "GB/s");
}

/// One kind of matrix product of cuBLAS.
struct Kind {
  const char* name;
  Fill fill;
  std::size_t element_bytes;
  cudaDataType in, out;
  cublasComputeType_t compute;
  bool transposed;  ///< integer products want both factors with the summed dimension first
};

const std::array<Kind, 6> kinds = {{
    {"bf16", Fill::bf16, 2, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, false},
    {"fp16", Fill::f16, 2, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, false},
    {"tf32", Fill::f32, 4, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, false},
    {"fp32", Fill::f32, 4, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, false},
    {"fp64", Fill::f64, 8, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, false},
    {"int8", Fill::bytes, 1, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, true},
}};

/// c (d × d) = XᵀX, X rows × d in row-major order, which is d × rows in cuBLAS's column-major order.
void product(cublasHandle_t blas, const Kind& kind, int d, int rows, const void* x, void* c) {
  const float one32 = 1, zero32 = 0;
  const double one64 = 1, zero64 = 0;
  const std::int32_t one_integer = 1, zero_integer = 0;
  const void* one = kind.out == CUDA_R_64F   ? static_cast<const void*>(&one64)
                    : kind.out == CUDA_R_32I ? static_cast<const void*>(&one_integer)
                                             : &one32;
  const void* zero = kind.out == CUDA_R_64F   ? static_cast<const void*>(&zero64)
                     : kind.out == CUDA_R_32I ? static_cast<const void*>(&zero_integer)
                                              : &zero32;
  const int ld = kind.transposed ? rows : d;
  check(
      cublasGemmEx(blas, kind.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, kind.transposed ? CUBLAS_OP_N : CUBLAS_OP_T, d, d,
                   rows, one, x, kind.in, ld, x, kind.in, ld, zero, c, kind.out, d, kind.compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

/// Rows for about 2^37 operations, so that a launch is long against its own cost.
int rows_for(int d) {
  return static_cast<int>(
      std::min<std::int64_t>((std::int64_t{1} << 36) / (static_cast<std::int64_t>(d) * d), 1 << 20));
}

void measure_gemm(Report& report, const Kind& kind, int d) {
  const int rows = rows_for(d);
  const Stream stream;
  const Blas blas(stream.get());
  const std::int64_t count = static_cast<std::int64_t>(rows) * d;
  const DeviceMemory x(static_cast<std::size_t>(count) * kind.element_bytes);
  const DeviceMemory c(static_cast<std::size_t>(d) * static_cast<std::size_t>(d) * 8);
  fill(x.as(), count, kind.fill, stream.get());
  const double seconds =
      median_seconds(stream.get(), samples, [&] { product(blas.get(), kind, d, rows, x.as(), c.as()); });
  report.add("gemm_" + std::string(kind.name) + "_d" + std::to_string(d),
             2.0 * static_cast<double>(count) * d / seconds / 1e12, "TF/s");
}

void measure_syrk(Report& report, int d) {
  const int rows = rows_for(d);
  const Stream stream;
  const Blas blas(stream.get());
  const std::int64_t count = static_cast<std::int64_t>(rows) * d;
  const DeviceMemory x(static_cast<std::size_t>(count) * 8);
  const DeviceMemory c(static_cast<std::size_t>(d) * static_cast<std::size_t>(d) * 8);
  fill(x.as(), count, Fill::f64, stream.get());
  const double one = 1, zero = 0;
  const double seconds = median_seconds(stream.get(), samples, [&] {
    check(cublasDsyrk(blas.get(), CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, d, rows, &one, x.as<double>(), d, &zero,
                      c.as<double>(), d),
          "cublasDsyrk");
  });
  report.add("dsyrk_d" + std::to_string(d), static_cast<double>(count) * (d + 1) / seconds / 1e12, "TF/s");
}

std::vector<double> diagonal(const void* c, int d, bool wide) {
  const std::size_t count = static_cast<std::size_t>(d) * static_cast<std::size_t>(d);
  std::vector<double> all(count);
  if (wide) {
    check(cudaMemcpy(all.data(), c, count * 8, cudaMemcpyDeviceToHost), "copy of a product");
  } else {
    std::vector<float> narrow(count);
    check(cudaMemcpy(narrow.data(), c, count * 4, cudaMemcpyDeviceToHost), "copy of a product");
    std::copy(narrow.begin(), narrow.end(), all.begin());
  }
  std::vector<double> found;
  for (std::size_t i = 0; i < static_cast<std::size_t>(d); ++i) {
    found.push_back(all[i * static_cast<std::size_t>(d) + i]);
  }
  return found;
}

/// Mean relative error of the diagonal of one product with Kc rows against the fp64 product of the same rounded values.
/// Every term of a diagonal is positive, so truncation shows as a negative mean.
void measure_bias(Report& report, const Kind& kind, int kc) {
  constexpr int d = 256;
  const Stream stream;
  const Blas blas(stream.get());
  const std::int64_t count = static_cast<std::int64_t>(kc) * d;
  const DeviceMemory x(static_cast<std::size_t>(count) * kind.element_bytes);
  const DeviceMemory wide(static_cast<std::size_t>(count) * 8), c(std::size_t{d} * d * 8);
  fill(x.as(), count, kind.fill, stream.get());
  if (kind.fill == Fill::bf16) {
    widen<<<blocks, threads, 0, stream.get()>>>(wide.as<double>(), x.as<const __nv_bfloat16>(), count);
  } else {
    round_to_tf32<<<blocks, threads, 0, stream.get()>>>(x.as<float>(), count);
    widen<<<blocks, threads, 0, stream.get()>>>(wide.as<double>(), x.as<const float>(), count);
  }
  check(cudaGetLastError(), "a kernel");
  product(blas.get(), kind, d, kc, x.as(), c.as());
  check(cudaStreamSynchronize(stream.get()), "a product");
  const std::vector<double> rounded = diagonal(c.as(), d, false);
  product(blas.get(), kinds[4], d, kc, wide.as(), c.as());
  check(cudaStreamSynchronize(stream.get()), "a product");
  const std::vector<double> exact = diagonal(c.as(), d, true);
  double sum = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) sum += (rounded[i] - exact[i]) / exact[i];
  report.add("bias_" + std::string(kind.name) + "_kc" + std::to_string(kc), sum / d, "relative");
}

}  // namespace

void fill(void* to, std::int64_t count, Fill type, cudaStream_t stream) {
  switch (type) {
    case Fill::f64:
      fill_floating<<<blocks, threads, 0, stream>>>(static_cast<double*>(to), count);
      break;
    case Fill::f32:
      fill_floating<<<blocks, threads, 0, stream>>>(static_cast<float*>(to), count);
      break;
    case Fill::f16:
      fill_floating<<<blocks, threads, 0, stream>>>(static_cast<__half*>(to), count);
      break;
    case Fill::bf16:
      fill_floating<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(to), count);
      break;
    case Fill::bytes:
      fill_bytes<<<blocks, threads, 0, stream>>>(static_cast<std::uint8_t*>(to), count);
      break;
  }
  check(cudaGetLastError(), "filling");
}

double median_seconds(cudaStream_t stream, int count, const std::function<void()>& work) {
  cudaEvent_t start = nullptr, end = nullptr;
  check(cudaEventCreate(&start), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> milliseconds;
  for (int i = 0; i <= count; ++i) {
    check(cudaEventRecord(start, stream), "cudaEventRecord");
    work();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "what was measured");
    float took = 0;
    check(cudaEventElapsedTime(&took, start, end), "cudaEventElapsedTime");
    if (i > 0) milliseconds.push_back(took);  // the first loads code and data
  }
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  const auto middle = milliseconds.begin() + count / 2;
  std::nth_element(milliseconds.begin(), middle, milliseconds.end());
  return static_cast<double>(*middle) / 1e3;
}

void measure_vendor(Report& report) {
  attempt(report, "copies", [&] { measure_copies(report); });
  attempt(report, "device_copy", [&] { measure_device_copy(report); });
  for (const int d : {256, 1024, 4096}) {
    for (const Kind& kind : kinds) {
      attempt(report, "gemm_" + std::string(kind.name), [&] { measure_gemm(report, kind, d); });
    }
    attempt(report, "dsyrk", [&] { measure_syrk(report, d); });
  }
  for (const int kc : {256, 512, 1024, 4096, 16384, 65536}) {
    attempt(report, "bias_bf16", [&] { measure_bias(report, kinds[0], kc); });
    attempt(report, "bias_tf32", [&] { measure_bias(report, kinds[2], kc); });
  }
}

}  // namespace rowmill::bench
