#pragma once
// What a run tells of itself: figures of all ranks, and the attributes of the result file.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "comm/world.hpp"
#include "engine/run.hpp"

namespace rowmill {

/// The rows that --rows chooses. Throws Error(usage) for a range outside the source, Error(input) for no rows at all.
RowRange chosen_rows(const RunOptions& options, const SourceInfo& info);

/// The columns that --columns lists, one by one. Of a range that leaves the source one column outside is among them,
/// for select_columns to refuse.
std::vector<std::int64_t> chosen_columns(const RunOptions& options, const SourceInfo& info);

/// Job options as resolved. Throws Error(usage) for unknown words and for a precision that `ops` does not offer,
/// Error(input) for too few rows for --ddof.
JobOptions chosen_job_options(const RunOptions& options, const SourceInfo& info, std::int64_t block_rows, Ops& ops);

/// One rank's part of the report.
struct RankFigures {
  std::int64_t bytes_read = 0;
  std::string device;
  MemoryUse staging, on_device;

  std::vector<std::byte> serialise() const;  ///< adds this process's peak memory
};

/// Sums and maxima over ranks into the report.
void add_figures(const std::vector<std::vector<std::byte>>& of_ranks, RunReport& report);

/// The root attributes that every result file has.
void add_attributes(const RunOptions& options, const JobOptions& job_options, World& world,
                    const std::vector<std::vector<std::byte>>& of_ranks, RunReport& report);

/// What to say of a result file whose name promises another format; empty where it does not.
std::string output_warning(const std::string& output);

/// A rank's failure in words, from what ended its run.
Failure describe_failure(std::exception_ptr error);

std::string name_of(Missing missing);

/// The time now, UTC, ISO 8601.
std::string now_utc();

}  // namespace rowmill
