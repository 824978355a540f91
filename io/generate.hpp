#pragma once
// Synthetic data sets with known answers.
//
// Row i is  mean + L z_i + noise e_i  with independent standard normal z_i (rank of them) and e_i (one a column), so
// the covariance is L Lᵀ + noise² I. Every value depends on seed, row and column alone: not on blocks, storage chunks,
// filters or the machine (only exactly rounded operations are used).
#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.hpp"

namespace rowmill {

struct GenerateOptions {
  std::string path;            ///< ends in .npy: a NumPy file, with the answers in PATH.planted.h5; else HDF5
  std::string dataset = "/X";  ///< HDF5 only
  std::int64_t rows = 0, columns = 0;
  DType type = DType::f32;  ///< every type but bf16
  bool big_endian = false;
  std::int64_t chunk_rows = 0, chunk_columns = 0;  ///< both 0: contiguous
  std::string filter = "none";                     ///< "none", "gzip", "shuffle+gzip"; needs chunks
  int gzip_level = 4;
  std::uint64_t seed = 1;
  std::int64_t rank = 5;
  double missing_share = 0;  ///< share of NaN, independent of the values; floating types only
  /// Defaults by type: floating: 1, 1, 1, 0; integers: 4, 4, 10, and 0 (signed) or 128 (unsigned), so that 8 bits do.
  std::optional<double> noise;        ///< standard deviation of the part that columns do not share
  std::optional<double> loading;      ///< standard deviation of the elements of L sqrt(rank)
  std::optional<double> mean_spread;  ///< standard deviation of the column means …
  std::optional<double> mean_offset;  ///< … about this
  std::int64_t memory = 512LL << 20;  ///< bytes; shapes that need more are refused
  bool overwrite = false;
};

/// "float32", "uint8", …; throws Error(usage) naming the choices.
DType parse_generated_type(const std::string& name);

/// Writes the data set and /planted/mean, /planted/std and (up to 4096 columns) /planted/covariance, with attributes of
/// /planted: seed, rank, noise, missing. Integers are rounded (which adds 1/12 to the planted variances) and clipped;
/// float16 is clipped to its finite range. Written to a temporary, then renamed. Throws Error(usage) for options that
/// make no sense, Error(failed) if it cannot be written (and nothing is left behind). Uses HDF5 in this thread.
void generate(const GenerateOptions& options);

/// To be called before MPI is started and before anything else of HDF5 runs in this process, if it is going to
/// generate. A disk that runs full between storage chunks leaves HDF5 with a data set that it cannot close, and its
/// cleaning up at the end of the process (or in MPI_Finalize) then crashes. With this it does not clean up; nothing
/// needs it.
void skip_hdf5_cleanup_at_exit();

}  // namespace rowmill
