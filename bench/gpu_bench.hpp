#pragma once
// What the two halves of gpu_bench share: the vendor's own rates (gpu_vendor_rates.cu) and those of our module
// (gpu_module_rates.cpp).
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rowmill::bench {

inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}
inline void check(cublasStatus_t code, const char* what) {
  if (code != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(code));
}

/// A figure has a name without blanks, so that scripts find it, and a unit.
class Report {
 public:
  struct Figure {
    std::string name, unit;
    double value;
  };

  /// Prints it at once.
  void add(const std::string& name, double value, const std::string& unit);
  /// What could not be measured, and why.
  void add_failure(const std::string& name, const std::string& why);
  void write_json(const std::string& path) const;
  bool failed() const { return !failures_.empty(); }

 private:
  std::vector<Figure> figures_;
  std::vector<std::pair<std::string, std::string>> failures_;
};

/// Runs a part; what it throws becomes a failure of that name, and the next part runs.
void attempt(Report& report, const std::string& name, const std::function<void()>& part);

/// Owns device memory.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) { check(cudaMalloc(&memory_, bytes), "cudaMalloc"); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { cudaFree(memory_); }

  template <typename T = std::byte>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
};

/// Fills with values that a generator of fixed seed gives: floating types in (-1, 1), integers over their whole range.
enum class Fill : std::uint8_t { f64, f32, f16, bf16, bytes };
void fill(void* to, std::int64_t count, Fill type, cudaStream_t stream);

/// Median seconds of what `work` queues on the stream, by events: `samples` of them after one that is not counted.
double median_seconds(cudaStream_t stream, int samples, const std::function<void()>& work);

/// Copies by size with pinned memory, copy on the device, GEMM and SYRK, bias of tensor cores.
void measure_vendor(Report& report);

/// Our operations as the program calls them. `module` is the path of librowmill_cuda.so.
void measure_module(Report& report, const std::string& module);

}  // namespace rowmill::bench
