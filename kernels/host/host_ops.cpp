#include <algorithm>

#include "kernels/host/kernels.hpp"
#include "kernels/ops.hpp"

namespace rowmill {

namespace {

/// Queues each operation's host body.
class HostOps final : public Ops {
 public:
  explicit HostOps(Backend& backend) : backend_(backend) {}

  Backend& backend() override { return backend_; }

  std::string device_name() const override { return host_device_name(); }

  bool offers(Precision precision, ElementType) const override {
    return precision == Precision::fp64 || precision == Precision::fp32;
  }

  void prepare(const BlockShape&, Queue) override {}

  void inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact, Queue queue) override {
    backend_.submit(queue, [=] { host::inspect(block, first_missing, inexact); });
  }

  void inspect_product(const Block& block, const double* packed, std::int64_t* first_missing, Queue queue) override {
    backend_.submit(queue, [=] { host::inspect_product(block, packed, first_missing); });
  }

  void column_moments(const Block& block, ColumnMap map, ColumnMoments out, Queue queue) override {
    backend_.submit(queue, [=] { host::column_moments(block, map, out); });
  }

  void nearest_values(const Block& block, const double* targets, double* out, Queue queue) override {
    backend_.submit(queue, [=] { host::nearest_values(block, targets, out); });
  }

  std::size_t cross_product_scratch(ElementType, std::int64_t columns, Precision precision) const override {
    return host::cross_product_scratch(columns, precision);
  }

  void cross_product(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed,
                     Queue queue) override {
    backend_.submit(queue, [=] { host::cross_product(block, map, precision, scratch, packed); });
  }

  bool multiplies_entries() const override { return true; }

  std::size_t sparse_product_scratch(std::int64_t rows, std::int64_t columns) const override {
    return host::sparse_product_scratch(rows, columns);
  }

  void add_sparse_product(const Block& block, void* scratch, BinnedView acc, Queue queue) override {
    backend_.submit(queue, [=] { host::add_sparse_product(block, scratch, acc); });
  }

  void add_binned(BinnedView acc, const double* values, Queue queue) override {
    backend_.submit(queue, [=] { host::add_binned(acc, values); });
  }

  void merge_binned(BinnedView acc, BinnedView other, Queue queue) override {
    backend_.submit(queue, [=] { binned_merge(acc, other); });
  }

  void align_binned(BinnedView acc, const std::int8_t* tops, Queue queue) override {
    backend_.submit(queue, [=] {
      binned_align(acc, tops);
      std::copy_n(tops, acc.count, acc.top);
    });
  }

  void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    backend_.submit(queue, [=] { host::add(acc, values, count); });
  }

  void keep_min(double* acc, const double* values, std::int64_t count, Queue queue) override {
    backend_.submit(queue, [=] { host::keep_min(acc, values, count); });
  }

  void keep_max(double* acc, const double* values, std::int64_t count, Queue queue) override {
    backend_.submit(queue, [=] { host::keep_max(acc, values, count); });
  }

  void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    backend_.submit(queue, [=] { host::keep_min(acc, values, count); });
  }

  void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    backend_.submit(queue, [=] { host::keep_max(acc, values, count); });
  }

 private:
  Backend& backend_;
};

}  // namespace

std::unique_ptr<Ops> make_host_ops(Backend& backend) {
  return std::make_unique<HostOps>(backend);
}

}  // namespace rowmill
