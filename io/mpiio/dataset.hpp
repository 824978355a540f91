#pragma once
// A data set opened by HDF5 in this very process, for reading by MPI-IO. All of it on the thread that does MPI.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "io/input_plan.hpp"

namespace rowmill {

class MpiioDataset {
 public:
  struct Opening {
    bool together = false;               ///< collective over MPI_COMM_WORLD; else by this rank alone
    std::int64_t cache_bytes = 1 << 20;  ///< of decoded storage chunks
  };

  /// Opens what a checked plan names. Links out of the file are not followed, and no filters are loaded. Throws
  /// Error(input) for what HDF5 cannot read so, or what is not as planned: naming the cure, --io direct. MPI must have
  /// been started.
  MpiioDataset(const InputPlan& plan, Opening opening);
  MpiioDataset(const MpiioDataset&) = delete;
  MpiioDataset& operator=(const MpiioDataset&) = delete;
  /// What was opened together stays open until MPI ends: closing is collective, and to wait for a rank that failed
  /// could last for ever.
  ~MpiioDataset();

  /// As they lie in the file: all axes, of the row axis these rows only. `in_round`: all ranks are in read() or
  /// take_part().
  /// Throws Error(input) naming the rows.
  void read(RowRange rows, std::byte* to, bool in_round);

  /// This rank's part of a collective read in which it reads nothing.
  void take_part();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowmill
