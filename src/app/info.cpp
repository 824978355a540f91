#include "app/info.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/text.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"
#include "engine/device.hpp"
#include "engine/plan.hpp"
#include "engine/run.hpp"
#include "io/open.hpp"

namespace rowmill {

using nlohmann::json;

namespace {

InputRequest request_of(const RunOptions& run) {
  InputRequest request;
  request.inputs = run.inputs;
  request.format = run.format;
  request.row_axis = run.row_axis;
  if (run.timeout.count() > 0) request.time_limit = std::min(request.time_limit, run.timeout);
  return request;
}

/// The source that a job would mill, or why there is none.
struct Chosen {
  std::optional<SourceInfo> info;
  std::string why_not;
  ExitCode code = ExitCode::ok;  ///< ok also where nothing is wrong with the source but that it has no rows
};

Chosen choose(const RunOptions& run) {
  try {
    const InputRequest request = request_of(run);
    const SourceInfo info = make_source(plan_input(request), request)->info();
    if (info.rows == 0) return {std::nullopt, info.name() + ": has no rows to mill", ExitCode::ok};
    return {info, {}, ExitCode::ok};
  } catch (const Error& error) {
    return {std::nullopt, error.what(), error.code()};
  }
}

/// Seconds and bytes that a job would take, from a run over the source's first rows.
struct Estimate {
  double seconds = 0;
  std::int64_t bytes = 0;
  std::int64_t sample_rows = 0;
  std::string why_not;  ///< not empty: the first rows cannot be milled, and the rest of this is not set
};

Estimate estimate(RunOptions run, const std::string& job, const SourceInfo& info, World& alone) {
  constexpr std::int64_t sample_bytes = 32 << 20;
  const std::int64_t row_bytes =
      std::max<std::int64_t>(1, info.columns * static_cast<std::int64_t>(size_of(info.type)));
  run.job = job;
  run.ddof = 0;
  run.missing = "propagate";
  run.progress = "none";
  run.quiet = true;
  const std::int64_t rows = std::clamp<std::int64_t>(sample_bytes / row_bytes, 1, info.rows);
  run.end_row = rows;
  const RunReport report = rowmill::run(run, alone);
  if (report.exit_code != ExitCode::ok) return {.why_not = report.error};
  return Estimate{
      report.seconds * static_cast<double>(info.rows) / static_cast<double>(rows), report.memory.expected(), rows, {}};
}

/// Where a job would be milled, and why not on a GPU.
struct Place {
  std::string backend, device, why_host;
};

Place place_of(const RunOptions& run, World& alone) {
  const Device device = choose_device({run.backend, run.comm, run.device_memory, run.timeout}, alone);
  return {device.backend->name(), device.ops->device_name(), device.why_host};
}

std::string place_text(const Place& place) {
  const std::string kind = place.backend == "cuda" ? "the GPU" : "the host";
  return "  on " + kind + ", " + place.device +
         (place.why_host.empty() ? std::string() : "; not on a GPU: " + place.why_host) + "\n";
}

json place_json(const Place& place) {
  return {{"backend", place.backend},
          {"device", place.device},
          {"why_not_gpu", place.why_host.empty() ? json(nullptr) : json(place.why_host)}};
}

json chosen_json(const SourceInfo& info) {
  json files = json::array();
  if (!info.files.empty()) files = files_json(info);
  return {{"dataset", info.dataset},
          {"files", files},
          {"format", info.format},
          {"format_reason", info.format_reason},
          {"rows", info.rows},
          {"columns", info.columns},
          {"dtype", info.stored_type},
          {"shape", info.shape},
          {"row_axis", info.row_axis},
          {"storage", info.storage},
          {"way", info.way},
          {"storage_chunk_rows", info.storage_chunk_rows},
          {"layout_cost", info.layout_cost.empty() ? json(nullptr) : json(info.layout_cost)},
          {"warnings", info.warnings}};
}

/// Which axis is rows, where a format counts them from the other end.
std::string rows_text(const SourceInfo& info) {
  if (info.row_axis == 0) return "";
  return "; rows are axis " + std::to_string(info.row_axis) + " of the data set";
}

/// The files that are joined, the first of them one a line.
std::string files_text(const SourceInfo& info) {
  constexpr std::size_t shown = 10;
  std::string text;
  for (std::size_t i = 0; i < info.files.size() && i < shown; ++i) {
    const SourceFile& file = info.files[i];
    text += "  rows " + std::to_string(file.first_row) + ":" + std::to_string(file.first_row + file.rows) + " are " +
            heading_name(file.name()) + ", " + printable(file.stored_type) + "\n";
  }
  if (info.files.size() > shown)
    text += "  and " + counted(static_cast<std::int64_t>(info.files.size() - shown), "more file") + "\n";
  return text;
}

std::string chosen_text(const SourceInfo& info) {
  std::string text = "\nwould mill " + heading_name(info.dataset.empty() ? info.path : info.dataset) + ": " +
                     counted(info.rows, "row") + " × " + counted(info.columns, "column") + ", " +
                     printable(info.stored_type) + ", " + printable(info.storage) + ", " + info.way + "\n";
  if (!info.format_reason.empty()) {
    text += "as " + info.format + ": " + printable(info.format_reason) + rows_text(info) + "\n";
  }
  if (!info.layout_cost.empty()) text += "layout: " + printable(info.layout_cost) + "\n";
  text += files_text(info);
  for (const std::string& warning : info.warnings) text += "warning: " + printable(warning) + "\n";
  return text;
}

}  // namespace

namespace {

json listing_json(const FileListing& listing) {
  json all{{"path", listing.path},
           {"format", listing.format},
           {"format_reason", listing.format_reason},
           {"bytes", listing.bytes},
           {"notes", listing.notes}};
  for (const DatasetLine& d : listing.datasets) {
    all["datasets"].push_back({{"path", d.path},
                               {"type", d.type},
                               {"shape", d.shape},
                               {"storage", d.storage},
                               {"numeric", d.numeric},
                               {"why_not", d.why_not}});
  }
  return all;
}

std::string listing_text(const FileListing& listing) {
  constexpr std::size_t most = 200;
  std::vector<std::vector<std::string>> rows;
  for (const DatasetLine& d : listing.datasets) {
    if (rows.size() == most) break;
    rows.push_back({"  " + d.path, d.type, d.shape, d.numeric ? d.storage : d.why_not});
  }
  std::string text = heading_name(listing.path) + ": " + listing.format +
                     (listing.format_reason.empty() ? "" : " (" + heading_name(listing.format_reason) + ")") + ", " +
                     format_size(listing.bytes) + "\n" + format_table(rows);
  if (listing.datasets.size() > most) {
    text += "  … and " + counted(static_cast<std::int64_t>(listing.datasets.size() - most), "more data set") +
            ", which --json lists\n";
  }
  for (const std::string& note : listing.notes) text += heading_name(note) + "\n";
  return text;
}

std::string estimate_text(const std::string& job, const Estimate& expected) {
  if (!expected.why_not.empty()) return "  " + job + ": cannot be run: " + expected.why_not + "\n";
  return "  " + job + ": about " + format_duration(expected.seconds) + " and " + format_size(expected.bytes) +
         " of memory on one rank (from its first " + counted(expected.sample_rows, "row") + ")\n";
}

json estimate_json(const Estimate& expected) {
  if (!expected.why_not.empty()) return {{"why_not", expected.why_not}};
  return {{"seconds", expected.seconds}, {"bytes", expected.bytes}};
}

}  // namespace

std::string describe_input(const CommandLine& line, World& alone) {
  const FileListing listing = list_input(request_of(line.run));
  const Chosen chosen = choose(line.run);
  json all = listing_json(listing);
  std::string text = listing_text(listing);
  const auto& inputs = line.run.inputs;
  const bool named = inputs.size() > 1 || !split_input(inputs[0]).second.empty();
  if (chosen.code != ExitCode::ok && named) throw Error(chosen.code, chosen.why_not);
  if (!chosen.info) {
    text += "\nnothing would be milled: " + printable(chosen.why_not) + "\n";
    all["would_mill"] = nullptr;
    all["why_not"] = chosen.why_not;
    return line.json ? json_text(all) : text;
  }
  const Place place = place_of(line.run, alone);
  text += chosen_text(*chosen.info) + place_text(place);
  all["would_mill"] = chosen_json(*chosen.info);
  all["where"] = place_json(place);
  for (const std::string& job : job_names()) {
    const Estimate expected = estimate(line.run, job, *chosen.info, alone);
    text += estimate_text(job, expected);
    all["expected"][job] = estimate_json(expected);
  }
  return line.json ? json_text(all) : text;
}

}  // namespace rowmill
