#pragma once
// A data set of HDF5 read in this process, by parallel HDF5 and MPI-IO: for files that are trusted, on parallel file
// systems.
#include <memory>

#include "core/pool.hpp"
#include "io/dense_source.hpp"
#include "io/input_plan.hpp"
#include "io/mpiio/dataset.hpp"
#include "io/mpiio/mpi_thread.hpp"
#include "io/row_layout.hpp"

namespace rowmill {

class MpiioSource : public DenseSource {
 public:
  /// Collective where `thread` reads so: the plan is then the same on all ranks, and no other such source lives.
  /// `thread` outlives this. `memory_limit`: of decoded storage chunks that are kept. Throws Error(input).
  MpiioSource(const InputPlan& plan, MpiThread& thread, std::int64_t memory_limit);
  ~MpiioSource() override;

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  void open(const InputPlan& plan, std::int64_t cache_bytes);
  void open_together(const InputPlan& plan, std::int64_t cache_bytes);
  void read_piece(RowRange rows, std::byte* to);

  MpiThread& thread_;
  RowLayout layout_;
  MemoryPool scratch_;
  std::int64_t piece_rows_ = 1;
  std::shared_ptr<MpiioDataset> dataset_;
};

/// Throws Error(input) where it is known from the plan alone that `thread` cannot read it.
void check_for_mpiio(const InputPlan& plan, const MpiThread& thread);

}  // namespace rowmill
