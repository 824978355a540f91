// What OpenBLAS reaches on the same products, where it is installed: ssyrk and dsyrk of 384 rows, one thread a call.
// OpenBLAS 0.3.21 does not know newer processors: give OPENBLAS_CORETYPE=SkylakeX (AVX-512) or Haswell (AVX2).
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <vector>

namespace {

using Ssyrk = void (*)(int, int, int, int, int, float, const float*, int, float, float*, int);
using Dsyrk = void (*)(int, int, int, int, int, double, const double*, int, double, double*, int);
constexpr int row_major = 101, lower = 122, transposed = 112;

void* openblas() {
  static void* const library = [] {
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    return dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

template <typename Work>
void openblas_syrk(benchmark::State& state) {
  using Function = std::conditional_t<std::is_same_v<Work, float>, Ssyrk, Dsyrk>;
  if (openblas() == nullptr) return state.SkipWithError("libopenblas.so.0 is not installed");
  const auto syrk =
      reinterpret_cast<Function>(dlsym(openblas(), std::is_same_v<Work, float> ? "cblas_ssyrk" : "cblas_dsyrk"));
  const int columns = static_cast<int>(state.range(0)), rows = 384;
  std::vector<Work> data(static_cast<std::size_t>(rows * columns), Work{1}), out(data.size() + columns * columns);
  for (auto _ : state) {
    syrk(row_major, lower, transposed, columns, rows, 1, data.data(), columns, 0, out.data(), columns);
  }
  state.counters["flop/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * rows * columns * (columns + 1), benchmark::Counter::kIsRate);
}
BENCHMARK_TEMPLATE(openblas_syrk, float)
    ->Arg(64)
    ->Arg(256)
    ->Arg(512)
    ->Arg(1024)
    ->Arg(4096)
    ->UseRealTime()
    ->Threads(1)
    ->Threads(2);
BENCHMARK_TEMPLATE(openblas_syrk, double)
    ->Arg(64)
    ->Arg(256)
    ->Arg(512)
    ->Arg(1024)
    ->Arg(4096)
    ->UseRealTime()
    ->Threads(1)
    ->Threads(2);

}  // namespace
