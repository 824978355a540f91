#pragma once
// A data set in storage chunks without filters whose rows are axis 0: any rows can be read at their addresses, without
// reading whole storage chunks.
#include "core/pool.hpp"
#include "io/chunk_grid.hpp"
#include "io/dense_source.hpp"
#include "io/input_plan.hpp"
#include "io/read_file.hpp"

namespace rowmill {

class ChunkSource : public DenseSource {
 public:
  /// Of a plan that is_read_in_place().
  explicit ChunkSource(const InputPlan& plan);

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  std::int64_t address_of(std::int64_t index) const;  ///< -1: never written
  void read_part(std::int64_t cell, std::int64_t address, RowRange rows, std::byte* to);
  void read_runs(std::int64_t cell, std::int64_t address, RowRange rows, std::byte* to);
  void read_bytes(std::int64_t offset, std::byte* to, std::int64_t bytes, std::int64_t row);

  ReadFile file_;
  ChunkGrid grid_;
  FillValue value_;
  std::vector<h5::ChunkEntry> table_;
  MemoryPool scratch_;
};

}  // namespace rowmill
