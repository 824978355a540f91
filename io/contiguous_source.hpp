#pragma once
// A data set that lies in a file in one piece: contiguous HDF5, .npy.
#include "core/pool.hpp"
#include "io/dense_source.hpp"
#include "io/input_plan.hpp"
#include "io/read_file.hpp"
#include "io/row_layout.hpp"

namespace rowmill {

class ContiguousSource : public DenseSource {
 public:
  /// Opens the file. Throws Error(input) if it has become shorter than planned.
  explicit ContiguousSource(const InputPlan& plan);

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  void fill_runs(RowRange rows, std::byte* to);
  void fill_by_scratch(RowRange rows, std::byte* to);
  std::int64_t place(std::int64_t outer, std::int64_t row) const;
  void read_bytes(std::int64_t offset, std::byte* to, std::int64_t bytes, std::int64_t row);

  ReadFile file_;
  std::int64_t offset_;
  RowLayout layout_;
  MemoryPool scratch_;
};

/// Opens the planned file again on this rank. Throws Error(input) if it has become shorter meanwhile.
ReadFile reopen(const InputPlan& plan);

}  // namespace rowmill
