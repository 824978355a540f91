#include "engine/report.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/units.hpp"
#include "engine/machine.hpp"
#include "rowmill_version.hpp"

namespace rowmill {

using nlohmann::json;

std::string name_of(Missing missing) {
  switch (missing) {
    case Missing::error:
      return "error";
    case Missing::propagate:
      return "propagate";
    case Missing::skip:
      return "skip";
  }
  return "?";
}

RowRange chosen_rows(const RunOptions& options, const SourceInfo& info) {
  if (info.rows == 0) {
    throw Error(ExitCode::input, info.name() + ": has no rows, so there is nothing to mill: name another data set");
  }
  const std::int64_t end = options.end_row.value_or(info.rows);
  if (options.first_row < 0 || end > info.rows || options.first_row >= end) {
    const std::string range =
        std::to_string(options.first_row) + ":" + (options.end_row ? std::to_string(*options.end_row) : "");
    throw Error(ExitCode::usage, "--rows " + range + " does not lie within the " + counted(info.rows, "row") + " of " +
                                     info.name() + ": write A:B with 0 <= A < B <= " + std::to_string(info.rows));
  }
  return {options.first_row, end - options.first_row};
}

std::vector<std::int64_t> chosen_columns(const RunOptions& options, const SourceInfo& info) {
  std::vector<std::int64_t> columns;
  for (const ColumnRange& range : options.columns) {
    columns.push_back(range.first);
    const std::int64_t last = std::min(range.last.value_or(info.columns - 1), info.columns);
    for (std::int64_t column = range.first; column < last;) columns.push_back(++column);
  }
  return columns;
}

JobOptions chosen_job_options(const RunOptions& options, const SourceInfo& info, std::int64_t block_rows, Ops& ops) {
  const JobTraits& job = traits_of(options.job);
  JobOptions chosen;
  chosen.ddof = options.ddof;
  chosen.rtol = options.rtol;
  chosen.block_rows = block_rows;
  if (options.missing.empty()) {
    chosen.missing = job.missing;
  } else if (options.missing == "error" || options.missing == "propagate") {
    chosen.missing = options.missing == "error" ? Missing::error : Missing::propagate;
  } else {
    throw Error(ExitCode::usage, "--missing must be error or propagate");
  }
  if (!job.has_precision) {
    if (options.precision != "auto" && options.precision != "fp64") {
      throw Error(ExitCode::usage, job.name + " works in fp64 throughout: leave --precision out");
    }
    chosen.precision = Precision::fp64;
  } else {
    chosen.by_entries = multiplies_by_entries(options.precision, info, ops);
    const std::string wish = chosen.by_entries ? "fp64" : options.precision;
    const ProductModel model{info.type, job.shifts, ops.compute_capability()};
    const ProductChoice choice = choose_precision(wish, model, info.columns, options.rtol, ops);
    chosen.precision = choice.precision;
    chosen.chain_rows = choice.chain_rows;
    chosen.compute_capability = ops.compute_capability();
  }
  const std::int64_t rows = chosen_rows(options, info).count;
  if (job.has_ddof && rows - options.ddof < 1) {
    throw Error(ExitCode::input, info.name() + ": " + counted(rows, "row") + " with --ddof " +
                                     std::to_string(options.ddof) + ": a variance needs at least " +
                                     std::to_string(options.ddof + 1) + "; use more rows or --ddof 0");
  }
  return chosen;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::vector<std::byte> RankFigures::serialise() const {
  const std::string text = json{{"bytes_read", bytes_read},
                                {"peak_memory", peak_resident_memory()},
                                {"helper_memory", peak_memory_of_children("rowmill-h5-helper")},
                                {"device", device},
                                {"staging", {staging.current, staging.high_water}},
                                {"on_device", {on_device.current, on_device.high_water}}}
                               .dump();
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

namespace {

/// Names of files that would be opened by another program than one for HDF5.
bool has_foreign_ending(const std::string& path) {
  for (const char* ending : {".csv", ".tsv", ".txt", ".json", ".npy", ".npz", ".mat", ".parquet", ".xlsx", ".rds"}) {
    if (path.ends_with(ending)) return true;
  }
  return false;
}

/// One line; bytes that are not UTF-8 (file names may hold them) become U+FFFD.
std::string as_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json parsed(const std::vector<std::byte>& bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return json::parse(text, text + bytes.size());
}

/// The options as resolved, and instead of those that only limit the plan what it made of them on rank 0.
std::string command_as_run(const RunOptions& options, const RunReport& report) {
  json all = json::parse(options.command_json);
  if (options.memory == 0) all["memory"] = report.memory.node_bytes;  // else it stands there as it was given
  all["block-rows"] = report.block_rows;
  all["threads"] = report.memory.lanes;
  all["io-threads"] = report.memory.io_threads;
  all["prefetch"] = report.memory.read_ahead();
  if (report.memory.apart) all["device-memory"] = report.memory.device_budget;
  if (options.missing.empty()) all["missing"] = name_of(traits_of(options.job).missing);
  const std::int64_t first = options.first_row;
  all["rows"] = std::to_string(first) + ":" + std::to_string(first + report.input.rows);
  if (options.columns.empty()) all["columns"] = "0:" + std::to_string(report.input.columns);
  return as_text(all);
}

/// `one`: a SourceInfo of one file, or a SourceFile.
template <typename One>
json input_as_json(const One& one) {
  return json{{"path", std::filesystem::absolute(one.path).string()},
              {"dataset", one.dataset},
              {"format", one.format},
              {"shape", one.shape},
              {"row_axis", one.row_axis},
              {"dtype", one.stored_type},
              {"size", one.file_bytes},
              {"mtime_ns", one.modified_ns}};
}

json inputs_as_json(const SourceInfo& info) {
  json all = json::array();
  for (const SourceFile& file : info.files) all.push_back(input_as_json(file));
  if (info.files.empty()) all.push_back(input_as_json(info));
  return all;
}

/// Greatest of what ranks use.
void keep_greatest(MemoryUse& use, const json& of_rank) {
  use.current = std::max(use.current, of_rank.at(0).get<std::int64_t>());
  use.high_water = std::max(use.high_water, of_rank.at(1).get<std::int64_t>());
}

}  // namespace

std::string output_warning(const std::string& output) {
  if (!has_foreign_ending(output)) return {};
  return "the result in " + output + " is an HDF5 file, whatever its name says: use a name that ends in .h5";
}

void add_figures(const std::vector<std::vector<std::byte>>& of_ranks, RunReport& report) {
  for (const auto& bytes : of_ranks) {
    const json rank = parsed(bytes);
    report.bytes_read += rank.at("bytes_read").get<std::int64_t>();
    report.peak_memory = std::max(report.peak_memory, rank.at("peak_memory").get<std::int64_t>());
    report.helper_memory = std::max(report.helper_memory, rank.at("helper_memory").get<std::int64_t>());
    keep_greatest(report.staging, rank.at("staging"));
    keep_greatest(report.device, rank.at("on_device"));
  }
}

void add_attributes(const RunOptions& options, const JobOptions& job_options, World& world,
                    const std::vector<std::vector<std::byte>>& of_ranks, RunReport& report) {
  std::set<std::string> devices;
  for (const auto& bytes : of_ranks) devices.insert(parsed(bytes).at("device").get<std::string>());
  ResultSink& sink = report.result;
  sink.attribute("rowmill_version", std::string(version));
  sink.attribute("command", command_as_run(options, report));
  sink.attribute("inputs", as_text(inputs_as_json(report.source)));
  sink.attribute("rows", report.input.rows);
  sink.attribute("columns", report.input.columns);
  sink.attribute("missing", name_of(job_options.missing));
  sink.attribute("block_rows", report.block_rows);
  sink.attribute("passes", std::int64_t{report.passes});
  sink.attribute("world_size", std::int64_t{world.size()});
  sink.attribute("backend", report.backend);
  sink.attribute("comm", report.comm);
  sink.attribute("devices", as_text(json(devices)));
  sink.attribute("started", report.started);
  sink.attribute("seconds", report.seconds);
  sink.attribute("bytes_read", report.bytes_read);
  sink.attribute("staging_memory", report.staging.high_water);
  sink.attribute("device_memory", report.device.high_water);
}

Failure describe_failure(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return {e.code(), e.row(), e.what()};
  } catch (const std::bad_alloc&) {
    return {ExitCode::failed, std::nullopt, "out of memory: lower --memory, --threads or --block-rows"};
  } catch (const std::exception& e) {
    return {ExitCode::failed, std::nullopt, std::string("internal error: ") + e.what()};
  }
}

}  // namespace rowmill
