#pragma once
// A whole run: from an input's name to the result file. run.cpp is the flow in one page; read it first.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/world.hpp"
#include "core/block.hpp"
#include "core/result.hpp"
#include "engine/device.hpp"
#include "engine/plan.hpp"
#include "io/source.hpp"
#include "jobs/job.hpp"
#include "pipeline/block_pipeline.hpp"

namespace rowmill {

/// Columns of a source, both ends included; to its last one if `last` is not set.
struct ColumnRange {
  std::int64_t first = 0;
  std::optional<std::int64_t> last;
  bool operator==(const ColumnRange&) const = default;
};

/// The options of a job's run as the user gave them; the same on every rank.
struct RunOptions {
  std::string job;                  ///< "stats", "gram", "cov"
  std::vector<std::string> inputs;  ///< "FILE" or "FILE:/DATASET"; several are joined along rows
  std::string output;               ///< empty: no result file
  bool overwrite = false;

  std::string format = "auto";
  int row_axis = 0;
  std::int64_t first_row = 0;
  std::optional<std::int64_t> end_row;  ///< all rows if not set
  std::vector<ColumnRange> columns;     ///< all if empty

  int ddof = 1;
  std::string missing;  ///< "error", "propagate"; empty: the job's default
  std::string precision = "auto";
  double rtol = 3e-5;

  std::string backend = "auto";  ///< "auto", "host", "cuda"; tests: "host-async"
  std::string comm = "auto";     ///< "auto", "nccl", "mpi"
  std::string io = "direct";     ///< "direct", "mpiio", "mpiio-collective": these need a World that has started MPI
  std::int64_t memory = 0, device_memory = 0, block_rows = 0;
  std::string scratch;  ///< a folder for what memory does not hold; empty: none
  int prefetch = 4, io_threads = 0, threads = 0;
  std::chrono::milliseconds timeout{600000};
  std::string progress = "auto";
  bool quiet = false;               ///< warnings stand in the report only
  std::string command_json = "{}";  ///< all options as resolved before there is a plan
};

/// What a run leaves behind, on rank 0; elsewhere, and after an error, only the first two are set.
struct RunReport {
  ExitCode exit_code = ExitCode::ok;
  std::string error;  ///< the line to say; not empty on exactly one rank of a run that failed
  SourceInfo source;
  JobInput input;
  std::vector<std::int64_t> chosen_columns;  ///< of the source, in the order of --columns; empty: all
  ResultSink result;
  std::vector<std::string> warnings;
  std::int64_t block_rows = 0, blocks = 0, bytes_read = 0;
  int passes = 1;
  std::string started;  ///< UTC, ISO 8601
  double seconds = 0;
  MemoryPlan memory;
  std::string backend, comm;       ///< where it was computed; "self", "mpi" or "nccl"
  std::int64_t peak_memory = 0;    ///< the greatest of any rank, as the next three
  std::int64_t helper_memory = 0;  ///< of one process that reads by HDF5; 0: there is none, or it is not known
  MemoryUse staging, device;       ///< at the end and at most
  PipelineStats pipeline;          ///< of rank 0
};

/// Collective. An error on any rank ends all with that error: all return its exit code, one
/// rank the line to say.
RunReport run(const RunOptions& options, World& world, const CudaProber& probe = probe_cuda);

}  // namespace rowmill
