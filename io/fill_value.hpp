#pragma once
// What elements hold that were never written, and a data set of which nothing is stored.
#include "io/dense_source.hpp"
#include "io/input_plan.hpp"

namespace rowmill {

class FillValue {
 public:
  /// The bytes of one element.
  explicit FillValue(std::vector<std::byte> element);
  void repeat(std::int64_t count, std::byte* to) const;

 private:
  std::vector<std::byte> element_;
  bool all_bytes_same_;
};

class FillSource : public DenseSource {
 public:
  explicit FillSource(const InputPlan& plan) : DenseSource(info_of(plan)), value_(plan.fill) {}

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  FillValue value_;
};

}  // namespace rowmill
