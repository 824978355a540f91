#include "kernels/cuda/cuda_ops.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include "core/cuda_check.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/warm_up.hpp"
#include "kernels/cuda/workspace.hpp"

namespace rowmill {

namespace {

using cuda::Workspace;

/// Queues each operation's kernels. Thread safe as long as each queue is used by one thread at a time.
class CudaOps final : public Ops {
 public:
  explicit CudaOps(Backend& backend) : backend_(backend) {
    // a queue knows its device, whatever device is current in this thread
    auto* const stream = static_cast<cudaStream_t>(backend.native(backend.make_queue()));
    check_cuda(cudaStreamGetDevice(stream, &device_), "cudaStreamGetDevice");
    cudaDeviceProp properties;
    check_cuda(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
    device_name_ = properties.name;
    compute_capability_ = 10 * properties.major + properties.minor;
  }

  Backend& backend() override { return backend_; }
  std::string device_name() const override { return device_name_; }
  int compute_capability() const override { return compute_capability_; }
  bool offers(Precision precision, ElementType type) const override { return CudaProduct::offers(precision, type); }

  void prepare(const BlockShape& shape, Queue queue) override {
    stream_of(queue);
    Workspace& workspace = workspace_to_prepare(queue);
    workspace.prepare(shape);
    workspace.prepare({shape.type, cuda::warm_up_size, cuda::warm_up_size, std::nullopt});
    const DeviceBuffer memory(backend_, cuda::warm_up_bytes(), queue);
    cuda::warm_up(*this, shape.type, memory.data(), queue);
    backend_.wait_host(backend_.record(queue));
  }

  void inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact, Queue queue) override {
    cuda::inspect(block, nullptr, first_missing, inexact, stream_of(queue));
  }

  void inspect_product(const Block& block, const double* packed, std::int64_t* first_missing, Queue queue) override {
    const cudaStream_t stream = stream_of(queue);
    int* const gate = workspace(queue).gate();
    cuda::look_at_diagonal(packed, column_count(block.x), gate, stream);
    cuda::inspect(block, gate, first_missing, nullptr, stream);
  }

  void column_moments(const Block& block, ColumnMap map, ColumnMoments out, Queue queue) override {
    cuda::column_moments(block, map, out, workspace(queue).columns_of(block), stream_of(queue));
  }

  void nearest_values(const Block& block, const double* targets, double* out, Queue queue) override {
    cuda::nearest_values(block, targets, out, workspace(queue).columns_of(block), stream_of(queue));
  }

  std::size_t cross_product_scratch(ElementType type, std::int64_t columns, Precision precision) const override {
    return CudaProduct::scratch_bytes(type, columns, precision);
  }

  void cross_product(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed,
                     Queue queue) override {
    stream_of(queue);
    workspace(queue).product().run(block, map, precision, scratch, packed);
  }

  void add_binned(BinnedView acc, const double* values, Queue queue) override {
    cuda::add_binned(acc, values, stream_of(queue));
  }

  void merge_binned(BinnedView acc, BinnedView other, Queue queue) override {
    cuda::merge_binned(acc, other, stream_of(queue));
  }

  void align_binned(BinnedView acc, const std::int8_t* tops, Queue queue) override {
    cuda::align_binned(acc, tops, stream_of(queue));
  }

  void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    cuda::add(acc, values, count, stream_of(queue));
  }

  void keep_min(double* acc, const double* values, std::int64_t count, Queue queue) override {
    cuda::keep_min(acc, values, count, stream_of(queue));
  }

  void keep_max(double* acc, const double* values, std::int64_t count, Queue queue) override {
    cuda::keep_max(acc, values, count, stream_of(queue));
  }

  void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    cuda::keep_min(acc, values, count, stream_of(queue));
  }

  void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    cuda::keep_max(acc, values, count, stream_of(queue));
  }

 private:
  /// The queue's stream, with its device made the calling thread's current one: kernels go nowhere else.
  cudaStream_t stream_of(Queue queue) const {
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    return static_cast<cudaStream_t>(backend_.native(queue));
  }

  Workspace& workspace(Queue queue) {
    const std::lock_guard lock(mutex_);
    const auto found = workspaces_.find(queue.id);
    if (found == workspaces_.end()) throw std::logic_error("prepare() was not called for this queue");
    return *found->second;
  }

  Workspace& workspace_to_prepare(Queue queue) {
    const std::lock_guard lock(mutex_);
    auto& workspace = workspaces_[queue.id];
    if (!workspace) workspace = std::make_unique<Workspace>(backend_, queue);
    return *workspace;
  }

  Backend& backend_;
  int device_ = 0, compute_capability_ = 0;
  std::string device_name_;
  std::mutex mutex_;  ///< of the map, not of what it holds
  std::map<int, std::unique_ptr<Workspace>> workspaces_;
};

}  // namespace

std::unique_ptr<Ops> make_cuda_ops(Backend& backend) {
  return std::make_unique<CudaOps>(backend);
}

}  // namespace rowmill
