#include "app/text.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/table.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"
#include "engine/report.hpp"

namespace rowmill {

using nlohmann::json;

namespace {

json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

json numbers(const ResultDataset& dataset) {
  if (dataset.values.size() > 10000) return json{{"shape", dataset.shape}};
  json array = json::array();
  for (const double value : dataset.values) array.push_back(number(value));
  if (dataset.shape.size() != 2) return array;
  json matrix = json::array();
  for (std::int64_t i = 0; i < dataset.shape[0]; ++i) {
    matrix.push_back(json(array.begin() + i * dataset.shape[1], array.begin() + (i + 1) * dataset.shape[1]));
  }
  return matrix;
}

/// What processes that read by HDF5 occupy besides.
std::string helper_text(const RunReport& report) {
  if (report.helper_memory > 0)
    return ", and " + format_size(report.helper_memory) + " in each process that reads for it by HDF5";
  return report.memory.lanes_read ? "" : ", besides the processes that read for it by HDF5";
}

/// U+007F to U+009F, which may steer a terminal, come out of dump() as they are.
std::string without_controls(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto next = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
    const bool two = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (!two && byte != 0x7f) {
      result += text[at];
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(two ? next : byte));
    result += escaped;
    if (two) ++at;
  }
  return result;
}

/// The view that was taken of the file, where it is more than the numbers as they are stored.
std::string format_text(const SourceInfo& source) {
  if (source.format_reason.empty()) return "";
  const std::string rows = source.row_axis == 0 ? "" : ", rows are axis " + std::to_string(source.row_axis);
  return " (" + source.format + rows + ")";
}

}  // namespace

std::string json_text(const json& value) {
  // names of files and data sets need not be UTF-8
  return without_controls(value.dump(2, ' ', false, json::error_handler_t::replace)) + "\n";
}

std::string heading_name(const std::string& name) {
  return shortened(printable(name), 300);
}

std::string wrote_text(const CommandLine& line) {
  const GenerateOptions& g = line.generate;
  if (!line.json) {
    const bool as_named = g.path.ends_with(".npy") || output_warning(g.path).empty();
    return "wrote " + g.path + (as_named ? "" : ", an HDF5 file whatever its name says") + "\n";
  }
  const json all{{"command", "generate"}, {"output", g.path},         {"dataset", g.dataset}, {"rows", g.rows},
                 {"columns", g.columns},  {"dtype", name_of(g.type)}, {"seed", g.seed}};
  return json_text(all);
}

json files_json(const SourceInfo& info) {
  json files = json::array();
  for (const SourceFile& file : info.files) {
    files.push_back({{"path", file.path},
                     {"dataset", file.dataset},
                     {"format", file.format},
                     {"dtype", file.stored_type},
                     {"first_row", file.first_row},
                     {"rows", file.rows}});
  }
  return files;
}

std::string result_table(const CommandLine& line, const RunReport& report, const Planted& planted) {
  const SourceInfo& source = report.source;
  std::string text = line.command + " of " + heading_name(source.name()) + format_text(source) + ": " +
                     counted(report.input.rows, "row") + " × " + counted(report.input.columns, "column") + ", " +
                     printable(source.stored_type) + "\n\n";
  text += result_tables(report, planted, traits_of(line.command).shown);
  text += '\n';
  text += format_duration(report.seconds) + ", " + format_size(report.bytes_read) + " read" +
          (report.passes > 1 ? " in " + std::to_string(report.passes) + " passes" : "") + ", " +
          format_size(report.peak_memory) + " of memory at most in a rank" + helper_text(report) + "\n";
  text += line.run.output.empty() ? "no result file: name one with -o\n" : "result in " + line.run.output + "\n";
  return text;
}

std::string lost_text(const CommandLine& line) {
  const std::string lost = "standard output cannot be written: what was to be printed is lost";
  const std::string& written = line.command == "generate" ? line.generate.path : line.run.output;
  if (line.command == "info" || written.empty()) return lost;
  return lost + ", but " + written + " was written and is whole";
}

std::string result_json(const CommandLine& line, const RunReport& report) {
  json all{{"command", line.command},
           {"input",
            {{"path", report.source.path},
             {"dataset", report.source.dataset},
             {"format", report.source.format},
             {"dtype", report.source.stored_type},
             {"shape", report.source.shape}}},
           {"output", line.run.output.empty() ? json(nullptr) : json(line.run.output)},
           {"rows", report.input.rows},
           {"columns", report.input.columns},
           {"blocks", report.blocks},
           {"block_rows", report.block_rows},
           {"passes", report.passes},
           {"backend", report.backend},
           {"comm", report.comm},
           {"seconds", report.seconds},
           {"bytes_read", report.bytes_read},
           {"warnings", report.warnings},
           {"memory",
            {{"budget_of_rank", report.memory.budget},
             {"expected", report.memory.expected()},
             {"peak", report.peak_memory},
             {"peak_of_helper", report.helper_memory},
             {"staging", report.staging.current},
             {"staging_high_water", report.staging.high_water},
             {"device", report.device.current},
             {"device_high_water", report.device.high_water},
             {"device_budget", report.memory.device_budget},
             {"device_expected", report.memory.expected_on_device()},
             {"lanes", report.memory.lanes},
             {"slots", report.memory.slots},
             {"slot_bytes", report.memory.slot_bytes}}},
           {"pipeline",
            {{"blocks", report.pipeline.blocks},
             {"bytes", report.pipeline.bytes},
             {"read_seconds", report.pipeline.read_seconds},
             {"wait_seconds", report.pipeline.wait_seconds}}}};
  if (!report.source.files.empty()) all["input"]["files"] = files_json(report.source);
  if (!report.chosen_columns.empty()) all["chosen_columns"] = report.chosen_columns;
  if (!report.source.column_names.empty()) all["column_names"] = report.source.column_names;
  for (const auto& attribute : report.result.attributes()) {
    if (!attribute.first.starts_with("precision")) continue;
    std::visit([&](const auto& value) { all[attribute.first] = value; }, attribute.second);
  }
  for (const ResultDataset& dataset : report.result.datasets()) all["result"][dataset.name] = numbers(dataset);
  return json_text(all);
}

}  // namespace rowmill
