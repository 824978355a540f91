#pragma once
// Sources: something rows can be read from.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/block.hpp"

namespace rowmill {

/// One of the files that a source is joined of.
struct SourceFile {
  std::string path, dataset, format, stored_type;
  std::vector<std::int64_t> shape;
  int row_axis = 0;
  std::int64_t first_row = 0, rows = 0;  ///< of the source
  std::int64_t file_bytes = 0, modified_ns = 0;

  std::string name() const { return dataset.empty() ? path : path + ":" + dataset; }
};

/// What is known of a source before a row is read.
struct SourceInfo {
  std::string path, dataset;  ///< dataset is empty for .npy
  std::string format;         ///< "hdf5", "npy", "netcdf", "matlab", "anndata", "10x", "loom", "pandas"
  std::string format_reason;  ///< how that is known; empty for .npy and plain HDF5
  std::int64_t rows = 0, columns = 0;
  ElementType type;                 ///< as `read` delivers it
  std::string stored_type;          ///< as people say it: "float32", "int24", "bool"
  std::vector<std::int64_t> shape;  ///< of the data set, all axes
  int row_axis = 0;
  std::int64_t storage_chunk_rows = 1;  ///< rows of one storage chunk; 1 where there are none
  std::int64_t entries = -1;            ///< that sparse rows hold, -1 where rows are dense
  double entry_pairs = 0;               ///< of sparse rows: the sum of n (n + 1) / 2, n the entries of a row
  std::string storage;  ///< "contiguous", "chunked 1024 x 512, gzip 4 + shuffle", "compact", "virtual", …
  std::string way;      ///< how it is read: "pread", "storage chunks by pread", "H5Dread in the helper"
  std::int64_t file_bytes = 0, modified_ns = 0;  ///< modified_ns: since the epoch
  std::vector<std::string> column_names;         ///< empty if there are none
  std::int64_t reader_bytes = 0;      ///< memory that each thread reading at the same time takes besides its buffer
  std::int64_t shared_bytes = 0;      ///< memory that the source takes once, whoever reads
  bool read_elsewhere = false;        ///< other processes do the work of reading, threads here wait for them
  bool has_planted = false;           ///< the file holds the answers that `rowmill generate` plants
  std::string layout_cost;            ///< what it costs that rows lie as they do, and the cure; empty if little
  std::vector<std::string> warnings;  ///< each is said once, by rank 0
  std::vector<SourceFile> files;      ///< joined along rows, in this order; empty: one file, and all of this is of it

  /// As messages name it: "FILE:/DATASET", also where the data set was chosen and not given.
  std::string name() const { return dataset.empty() ? path : path + ":" + dataset; }
};

/// Rows as they lie in the buffer that `Source::read` filled.
struct SourceRows {
  Rows rows;
  std::optional<MaskView> missing;
};

/// How a run will ask for rows.
struct ReadingPlan {
  BlockGrid grid;
  RowRange rows;                 ///< of the blocks of this rank
  std::int64_t memory_bytes;     ///< that the source may take to keep what several blocks share
  int readers = 1;               ///< threads that may read at the same time
  std::int64_t rows_before = 0;  ///< of other sources, from the first of which on blocks are counted
  std::string scratch = {};      ///< a folder for what memory does not hold; empty: none
};

/// As messages name a row: "FILE:/DATASET: …" and the row's number in that file, also where files are joined.
struct RowPlace {
  std::string name;
  std::int64_t row;
};
RowPlace place_of_row(const SourceInfo& info, std::int64_t row);

/// Thread safety: `read` may be called from several threads at once, with different buffers.
class Source {
 public:
  virtual ~Source() = default;
  virtual const SourceInfo& info() const = 0;

  /// Says how rows will be asked for, before the first of them is; may change the memory and the warnings in info().
  /// Without it, or for other rows than these, `read` gives the same, slower. Throws Error(input) where that would be
  /// out of all proportion.
  virtual void prepare(const ReadingPlan& /*plan*/) {}

  /// Bytes that `read` needs for these rows (a bound; the same for every range of equal length in dense sources).
  virtual std::size_t bytes_for(RowRange rows) const = 0;

  /// Reads the rows (0 <= first, end <= info().rows) into `to`, 64-byte aligned and at least bytes_for(rows) long, and
  /// says how they lie there. Blocks until they are there. Throws Error(input) naming file, data set and row.
  virtual SourceRows read(RowRange rows, std::span<std::byte> to) = 0;

  /// To be called when all that is wanted has been read. Throws Error(input) if a file was written to since it was
  /// planned.
  virtual void check_unchanged() const;

  /// Bytes asked of the file so far by this rank, metadata aside.
  std::int64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }

 protected:
  void count_bytes(std::int64_t bytes) { bytes_read_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> bytes_read_{0};
};

/// Sources walked together, aligned by row: the same number of rows each. y and weights may be null; they are dense.
struct SourceSet {
  Source* x = nullptr;
  Source* y = nullptr;
  Source* weights = nullptr;
};

/// Throws Error(input) naming both if the rows differ or y or weights is sparse.
void check_aligned(const SourceSet& sources);

/// A source that delivers only the given columns of another, in that order; sparse rows where the other does. Throws
/// Error(usage) for a column that is not there.
std::unique_ptr<Source> select_columns(std::unique_ptr<Source> source, std::vector<std::int64_t> columns);

}  // namespace rowmill
