#pragma once
// What only H5Dread can read (filters, virtual data sets, odd types, …): through helper processes, one for each thread
// that reads at the same time, so that decompression runs in parallel.
#include <string>

#include "io/dense_source.hpp"
#include "io/helper_readers.hpp"
#include "io/input_plan.hpp"
#include "io/row_layout.hpp"

namespace rowmill {

class HelperSource : public DenseSource {
 public:
  HelperSource(const InputPlan& plan, std::string program, HelperLimits limits);

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  void choose_cache(const InputPlan& plan);
  void fill_piece(HelperReader& reader, RowRange rows, std::byte* to);

  HelperLimits limits_;
  RowLayout layout_;
  std::int64_t piece_rows_ = 1, cache_bytes_ = 1 << 20, cache_slots_ = 521;
  HelperReaders readers_;
};

}  // namespace rowmill
