// Rates of our own operations on a GPU, called through librowmill_cuda.so as the program calls them. Products count one
// triangle, rows · d · (d + 1); bytes are those of the stored block.
#include <dlfcn.h>

#include <algorithm>

#include "bench/gpu_bench.hpp"
#include "core/cuda_module.hpp"
#include "kernels/ops.hpp"
#include "kernels/precision.hpp"

namespace rowmill::bench {

namespace {

constexpr std::int64_t block_bytes = std::int64_t{64} << 20;
constexpr int samples = 9;

struct Type {
  const char* name;
  DType dtype;
  Fill fill;
};
constexpr Type types[] = {
    {"f32", DType::f32, Fill::f32}, {"u8", DType::u8, Fill::bytes}, {"f16", DType::f16, Fill::f16}};

/// One block of random rows on the device, and the queue that works on it.
class Bench {
 public:
  Bench(Backend& backend, Ops& ops, const Type& type, std::int64_t columns)
      : backend_(backend),
        ops_(ops),
        queue_(backend.make_queue()),
        stream_(static_cast<cudaStream_t>(backend.native(queue_))),
        type_{type.dtype, false},
        columns_(columns),
        rows_(block_bytes / columns / static_cast<std::int64_t>(size_of(type.dtype))),
        data_(backend, static_cast<std::size_t>(block_bytes), queue_),
        shift_(backend, static_cast<std::size_t>(columns) * 8, queue_),
        name_(std::string(type.name) + "_d" + std::to_string(columns)) {
    fill(data_.data(), rows_ * columns_, type.fill, stream_);
    fill(shift_.data(), columns_, Fill::f64, stream_);
    block_.range = {0, rows_};
    block_.x = DenseRows{data_.data(), type_, rows_, columns_, columns_};
  }

  void product(Report& report, Precision precision) {
    ops_.prepare({type_, rows_, columns_, precision, chain_rows(precision)}, queue_);
    const std::int64_t entries = columns_ * (columns_ + 1) / 2;
    const std::size_t scratch_bytes = std::max<std::size_t>(64, ops_.cross_product_scratch(type_, columns_, precision));
    const DeviceBuffer scratch(backend_, scratch_bytes, queue_);
    const DeviceBuffer packed(backend_, static_cast<std::size_t>(entries) * 8, queue_);
    const DeviceBuffer sums(backend_, binned_bytes(entries), queue_);
    const DeviceBuffer flags(backend_, 16, queue_);
    backend_.clear(sums.data(), sums.size(), queue_);
    backend_.clear(flags.data(), flags.size(), queue_);
    auto* const values = reinterpret_cast<double*>(packed.data());
    auto* const flag = reinterpret_cast<std::int64_t*>(flags.data());
    const ColumnMap map{reinterpret_cast<const double*>(shift_.data()), nullptr};
    const BinnedView acc = binned_view(sums.data(), entries);
    const auto multiply = [&] { ops_.cross_product(block_, map, precision, scratch.data(), values, queue_); };
    const double alone = median_seconds(stream_, samples, multiply);
    const double whole = median_seconds(stream_, samples, [&] {
      multiply();
      ops_.inspect_product(block_, values, flag, queue_);
      ops_.add_binned(acc, values, queue_);
    });
    const std::string mode = name_of(precision) + "_" + name_;
    const double operations =
        static_cast<double>(rows_) * static_cast<double>(columns_) * (static_cast<double>(columns_) + 1);
    report.add("product_" + mode, operations / alone / 1e12, "TF/s");
    report.add("product_bytes_" + mode, static_cast<double>(block_bytes) / alone / 1e9, "GB/s");
    report.add("gram_block_" + mode, static_cast<double>(block_bytes) / whole / 1e9, "GB/s");
  }

  void moments(Report& report) {
    ops_.prepare({type_, rows_, columns_, std::nullopt}, queue_);
    const auto bytes = static_cast<std::size_t>(columns_) * 8;
    const DeviceBuffer memory(backend_, 6 * bytes, queue_);
    auto* const integers = reinterpret_cast<std::int64_t*>(memory.data());
    auto* const doubles = reinterpret_cast<double*>(memory.data() + 2 * bytes);
    const ColumnMoments out{integers,           integers + columns_,    doubles,
                            doubles + columns_, doubles + 2 * columns_, doubles + 3 * columns_};
    const ColumnMap map{reinterpret_cast<const double*>(shift_.data()), nullptr};
    const double seconds = median_seconds(stream_, samples, [&] { ops_.column_moments(block_, map, out, queue_); });
    report.add("moments_" + name_, static_cast<double>(block_bytes) / seconds / 1e9, "GB/s");
  }

  bool offers(Precision precision) const { return ops_.offers(precision, type_); }

 private:
  /// The longest chain that meets the default --rtol; the shortest where none does.
  std::int64_t chain_rows(Precision precision) const {
    const std::int64_t rows = chain_rows_within(precision, {type_, true, ops_.compute_capability()}, 3e-5);
    return rows > 0 ? rows : chain_ladder.front();
  }

  Backend& backend_;
  Ops& ops_;
  Queue queue_;
  cudaStream_t stream_;
  ElementType type_;
  std::int64_t columns_, rows_;
  DeviceBuffer data_, shift_;
  std::string name_;
  Block block_;
};

const CudaModule& open_module(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto table = reinterpret_cast<const CudaModule* (*)()>(dlsym(library, cuda_module_symbol));
  if (table == nullptr) throw std::runtime_error(path + " is no CUDA module of rowmill");
  return *table();
}

}  // namespace

void measure_module(Report& report, const std::string& path) {
  attempt(report, "module", [&] {
    const CudaModule& module = open_module(path);
    const std::unique_ptr<Backend> backend = module.make_backend(0, 0);
    const std::unique_ptr<Ops> ops = module.make_ops(*backend);
    for (const Type& type : types) {
      for (const std::int64_t columns : {256, 1024, 4096}) {
        const std::string name = std::string(type.name) + "_d" + std::to_string(columns);
        attempt(report, "moments_" + name, [&] { Bench(*backend, *ops, type, columns).moments(report); });
        for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::tf32, Precision::bf16,
                                          Precision::fp16, Precision::bf16x3, Precision::int8}) {
          if (!ops->offers(precision, {type.dtype, false})) continue;
          attempt(report, "product_" + name_of(precision) + "_" + name,
                  [&] { Bench(*backend, *ops, type, columns).product(report, precision); });
        }
      }
    }
  });
}

}  // namespace rowmill::bench
