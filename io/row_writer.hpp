#pragma once
// A job's output with one line a source row, written by all ranks into one HDF5 file.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/block.hpp"
#include "core/result.hpp"

namespace rowmill {

struct RowWriterOptions {
  bool overwrite = false;
  /// True: this process writes alone, without MPI. False: all ranks of MPI_COMM_WORLD write; MPI must have been
  /// started.
  bool alone = true;
  /// Called all the time while other ranks are waited for. What it throws ends the wait (and the writing: see below).
  std::function<void()> while_waiting = [] {};
  std::int64_t piece_bytes = std::int64_t{1} << 30;  ///< of one call of HDF5 at most
};

/// Writes a data set `output.name`, total_rows × output.width, float64 or float32, into a new file at `path`.
/// Constructor and finish are collective over the ranks; write is not: each rank writes any number of runs of rows, in
/// any order, each row once on one rank. The file gets its name in finish when all ranks have written all rows.
///
/// If a rank gives up (destroys the writer without finish, or throws out of it), no file stays; the others learn of it
/// through while_waiting only. HDF5 closes the file of several ranks in MPI_Finalize then: closing is collective, and
/// to wait for a failed rank could last for ever. Called from one thread.
class RowWriter {
 public:
  /// Throws Error(usage) as check_output does, Error(failed) if the file cannot be made: the same on every rank.
  RowWriter(const std::string& path, const RowOutput& output, std::int64_t total_rows, RowWriterOptions options);
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  ~RowWriter();

  /// `values`: rows.count × width, row-major. Throws Error(failed) naming the rows, and std::invalid_argument for rows
  /// outside the output or values of another size.
  void write(RowRange rows, std::span<const double> values);
  void write(RowRange rows, std::span<const float> values);

  /// Throws Error(failed) if a rank could not write, rows are missing, or the file cannot be closed and named: the same
  /// on every rank.
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowmill
