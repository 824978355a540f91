// Rates of the host kernels. Bytes are those of the stored block; products count one triangle, rows · d · (d + 1).
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "core/binned.hpp"
#include "kernels/host/kernels.hpp"

namespace {

using namespace rowmill;

/// Memory as the program's pools give it: 2 MiB aligned, in huge pages where there are any. Every byte has been
/// touched.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_((bytes + huge) / huge * huge) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(huge, bytes_)));
    madvise(memory_.get(), bytes_, MADV_HUGEPAGE);
    std::memset(memory_.get(), 0, bytes_);
  }
  void* data() { return memory_.get(); }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(memory_.get());
  }

 private:
  static constexpr std::size_t huge = std::size_t{1} << 21;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

template <typename T>
void fill(T* to, std::int64_t count) {
  std::mt19937 random(7);
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(random() % 200) / static_cast<T>(2);
}

Block dense_block(const void* data, ElementType type, std::int64_t rows, std::int64_t columns) {
  Block block;
  block.range = {0, rows};
  block.x = DenseRows{static_cast<const std::byte*>(data), type, rows, columns, columns};
  return block;
}

struct MomentsMemory {
  explicit MomentsMemory(std::int64_t columns)
      : integers(static_cast<std::size_t>(columns) * 16), doubles(static_cast<std::size_t>(columns) * 32) {}
  ColumnMoments view(std::int64_t columns) {
    auto* const i = integers.as<std::int64_t>();
    auto* const f = doubles.as<double>();
    return {i, i + columns, f, f + columns, f + 2 * columns, f + 3 * columns};
  }
  Memory integers, doubles;
};

/// range(0): columns; range(1): KiB of a block.
template <typename T, DType kType, bool kSwapped>
void column_moments(benchmark::State& state) {
  const std::int64_t columns = state.range(0);
  const std::int64_t rows = state.range(1) * 1024 / columns / static_cast<std::int64_t>(sizeof(T));
  Memory data(static_cast<std::size_t>(rows * columns) * sizeof(T));
  fill(data.as<T>(), rows * columns);
  MomentsMemory moments(columns);
  Memory shift(static_cast<std::size_t>(columns) * 8);
  const Block block = dense_block(data.data(), {kType, kSwapped}, rows, columns);
  for (auto _ : state) host::column_moments(block, {shift.as<double>(), nullptr}, moments.view(columns));
  state.SetBytesProcessed(state.iterations() * rows * columns * static_cast<std::int64_t>(sizeof(T)));
}
#define MOMENTS(type, dtype, swapped) BENCHMARK_TEMPLATE(column_moments, type, dtype, swapped)->UseRealTime()
MOMENTS(float, DType::f32, false)->Args({512, 1024})->Threads(1)->Threads(2);
MOMENTS(float, DType::f32, false)->Args({512, 262144})->Threads(1)->Threads(2);
MOMENTS(float, DType::f32, false)->Args({1, 1024})->Args({3, 1024})->Args({64, 1024})->Args({500, 1024});
MOMENTS(float, DType::f32, false)->Args({4096, 1024})->Args({4096, 262144});
MOMENTS(float, DType::f32, true)->Args({512, 1024});
MOMENTS(double, DType::f64, false)->Args({512, 1024})->Args({512, 262144});
MOMENTS(std::uint16_t, DType::u16, false)->Args({512, 1024});
MOMENTS(std::uint16_t, DType::f16, false)->Args({512, 1024});
MOMENTS(std::uint8_t, DType::u8, false)->Args({512, 1024});

void inspect_float32(benchmark::State& state) {
  const std::int64_t columns = 512, rows = state.range(0) * 1024 / columns / 4;
  Memory data(static_cast<std::size_t>(rows * columns) * 4);
  fill(data.as<float>(), rows * columns);
  const Block block = dense_block(data.data(), {DType::f32, false}, rows, columns);
  std::int64_t first_missing = nothing_missing, inexact = 0;
  for (auto _ : state) host::inspect(block, &first_missing, &inexact);
  if (first_missing != nothing_missing) state.SkipWithError("a NaN where there is none");
  state.SetBytesProcessed(state.iterations() * rows * columns * 4);
}
BENCHMARK(inspect_float32)->Args({1024})->Args({262144})->UseRealTime();

/// range(0): columns; range(1): rows.
template <Precision kPrecision, bool kShifted>
void cross_product_float32(benchmark::State& state) {
  const std::int64_t columns = state.range(0), rows = state.range(1);
  Memory data(static_cast<std::size_t>(rows * columns) * 4), shift(static_cast<std::size_t>(columns) * 8);
  fill(data.as<float>(), rows * columns);
  Memory scratch(host::cross_product_scratch(columns, kPrecision));
  Memory packed(static_cast<std::size_t>(columns * (columns + 1) / 2) * 8);
  const Block block = dense_block(data.data(), {DType::f32, false}, rows, columns);
  const ColumnMap map{kShifted ? shift.as<double>() : nullptr, nullptr};
  for (auto _ : state) host::cross_product(block, map, kPrecision, scratch.data(), packed.as<double>());
  state.counters["flop/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * rows * columns * (columns + 1)), benchmark::Counter::kIsRate);
}
#define PRODUCTS(precision, shifted)                            \
  BENCHMARK_TEMPLATE(cross_product_float32, precision, shifted) \
      ->UseRealTime()                                           \
      ->ArgsProduct({{64, 256, 512, 1024}, {1536}})
PRODUCTS(Precision::fp32, false)->Args({4096, 1536})->Threads(1)->Threads(2);
PRODUCTS(Precision::fp32, true);
PRODUCTS(Precision::fp64, false)->Args({4096, 1536})->Threads(1)->Threads(2);

/// range(0): elements.
void add_plain(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  Memory values(static_cast<std::size_t>(count) * 8), sums(static_cast<std::size_t>(count) * 8);
  fill(values.as<double>(), count);
  double* const to = sums.as<double>();
  for (auto _ : state) {
    for (std::int64_t i = 0; i < count; ++i) to[i] += values.as<double>()[i];
    benchmark::DoNotOptimize(to);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(add_plain)->Arg(1024)->Arg(131328)->Arg(8390656);

void add_binned(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  Memory values(static_cast<std::size_t>(count) * 8), sums(binned_bytes(count));
  fill(values.as<double>(), count);
  const BinnedView acc = binned_view(sums.data(), count);
  host::add_binned(acc, values.as<double>());  // the first terms raise every accumulator, which later ones do not
  for (auto _ : state) host::add_binned(acc, values.as<double>());
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(add_binned)->Arg(1024)->Arg(131328)->Arg(8390656);

}  // namespace
