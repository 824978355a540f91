#pragma once
// Ops that hand everything on to others, for doubles that change a little.
#include <string>

#include "kernels/ops.hpp"

namespace rowmill::test {

class ForwardingOps : public Ops {
 public:
  explicit ForwardingOps(Ops& to) : to_(to) {}

  Backend& backend() override { return to_.backend(); }
  std::string device_name() const override { return to_.device_name(); }
  int compute_capability() const override { return to_.compute_capability(); }
  bool offers(Precision precision, ElementType type) const override { return to_.offers(precision, type); }
  void prepare(const BlockShape& shape, Queue queue) override { to_.prepare(shape, queue); }
  void inspect(const Block& block, std::int64_t* first_missing, std::int64_t* inexact, Queue queue) override {
    to_.inspect(block, first_missing, inexact, queue);
  }
  void inspect_product(const Block& block, const double* packed, std::int64_t* first_missing, Queue queue) override {
    to_.inspect_product(block, packed, first_missing, queue);
  }
  void column_moments(const Block& block, ColumnMap map, ColumnMoments out, Queue queue) override {
    to_.column_moments(block, map, out, queue);
  }
  void nearest_values(const Block& block, const double* targets, double* out, Queue queue) override {
    to_.nearest_values(block, targets, out, queue);
  }
  std::size_t cross_product_scratch(ElementType type, std::int64_t columns, Precision precision) const override {
    return to_.cross_product_scratch(type, columns, precision);
  }
  void cross_product(const Block& block, ColumnMap map, Precision precision, void* scratch, double* packed,
                     Queue queue) override {
    to_.cross_product(block, map, precision, scratch, packed, queue);
  }
  bool multiplies_entries() const override { return to_.multiplies_entries(); }
  std::size_t sparse_product_scratch(std::int64_t rows, std::int64_t columns) const override {
    return to_.sparse_product_scratch(rows, columns);
  }
  void add_sparse_product(const Block& block, void* scratch, BinnedView acc, Queue queue) override {
    to_.add_sparse_product(block, scratch, acc, queue);
  }
  void add_binned(BinnedView acc, const double* values, Queue queue) override { to_.add_binned(acc, values, queue); }
  void merge_binned(BinnedView acc, BinnedView other, Queue queue) override { to_.merge_binned(acc, other, queue); }
  void align_binned(BinnedView acc, const std::int8_t* tops, Queue queue) override {
    to_.align_binned(acc, tops, queue);
  }
  void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    to_.add(acc, values, count, queue);
  }
  void keep_min(double* acc, const double* values, std::int64_t count, Queue queue) override {
    to_.keep_min(acc, values, count, queue);
  }
  void keep_max(double* acc, const double* values, std::int64_t count, Queue queue) override {
    to_.keep_max(acc, values, count, queue);
  }
  void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    to_.keep_min(acc, values, count, queue);
  }
  void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count, Queue queue) override {
    to_.keep_max(acc, values, count, queue);
  }

 private:
  Ops& to_;
};

}  // namespace rowmill::test
