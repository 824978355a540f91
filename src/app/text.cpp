#include "app/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/units.hpp"

namespace rowmill {

using nlohmann::json;

namespace {

constexpr std::size_t shown_columns = 12;

std::string column_name(const RunReport& report, std::size_t column) {
  const auto& names = report.source.column_names;
  if (column < names.size()) return names[column];
  return std::to_string(column < report.chosen_columns.size() ? report.chosen_columns[column]
                                                              : static_cast<std::int64_t>(column));
}

using TableRows = std::vector<std::vector<std::string>>;

/// One line a column: the named data sets, with planted answers behind mean and std.
TableRows column_rows(const RunReport& report, const Planted& planted, const std::vector<std::string>& names) {
  TableRows rows{{"column"}};
  const auto planted_of = [&](const std::string& name) -> const std::vector<double>* {
    if (name == "mean" && !planted.mean.empty()) return &planted.mean;
    if (name == "std" && !planted.deviation.empty()) return &planted.deviation;
    return nullptr;
  };
  for (const std::string& name : names) {
    rows[0].push_back(name);
    if (planted_of(name)) rows[0].push_back("(planted)");
  }
  const auto columns = static_cast<std::size_t>(report.input.columns);
  for (std::size_t j = 0; j < std::min(columns, shown_columns); ++j) {
    std::vector<std::string> row{column_name(report, j)};
    for (const std::string& name : names) {
      const double value = report.result.find(name)->values[j];
      const bool counts = name == "count" || name == "missing";  // in full, however large
      row.push_back(counts ? std::to_string(static_cast<std::int64_t>(value)) : format_number(value));
      if (const auto* values = planted_of(name)) row.push_back(j < values->size() ? format_number((*values)[j]) : "");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The upper left corner of a square matrix.
TableRows corner_rows(const RunReport& report, const std::string& name) {
  const auto columns = static_cast<std::size_t>(report.input.columns);
  const std::size_t shown = std::min<std::size_t>(columns, 8);
  TableRows rows{{name}};
  for (std::size_t j = 0; j < shown; ++j) rows[0].push_back(column_name(report, j));
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back({column_name(report, i)});
    for (std::size_t j = 0; j < shown; ++j) {
      rows.back().push_back(format_number(report.result.find(name)->values[i * columns + j]));
    }
  }
  return rows;
}

std::string left_out(std::int64_t columns, std::size_t shown) {
  const auto rest = columns - static_cast<std::int64_t>(shown);
  return rest > 0 ? "… and " + grouped(rest) + " more columns\n" : "";
}

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

}  // namespace

std::string format_number(double value) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

std::string wrote_text(const CommandLine& line) {
  const GenerateOptions& g = line.generate;
  if (!line.json) return "wrote " + g.path + "\n";
  const json all{{"command", "generate"}, {"output", g.path},         {"dataset", g.dataset}, {"rows", g.rows},
                 {"columns", g.columns},  {"dtype", name_of(g.type)}, {"seed", g.seed}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string format_table(const TableRows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::string pad(widths[k] - row[k].size(), ' ');
      text += k == 0 ? row[k] + pad : "  " + pad + row[k];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string result_table(const CommandLine& line, const RunReport& report, const Planted& planted) {
  const SourceInfo& source = report.source;
  std::string text = line.command + " of " + source.name() + ": " + grouped(report.input.rows) + " rows × " +
                     grouped(report.input.columns) + " columns, " + source.stored_type + "\n\n";
  if (line.command == "stats") {
    text += format_table(column_rows(report, planted, {"count", "missing", "mean", "std", "min", "max"}));
    text += left_out(report.input.columns, shown_columns);
  } else if (line.command == "cov") {
    text += format_table(column_rows(report, planted, {"mean", "std"})) + left_out(report.input.columns, shown_columns);
    text += '\n';
    text += format_table(corner_rows(report, "covariance")) + left_out(report.input.columns, 8);
  } else {
    text += format_table(corner_rows(report, line.command)) + left_out(report.input.columns, 8);
  }
  text += '\n';
  text += format_duration(report.seconds) + ", " + format_size(report.bytes_read) + " read" +
          (report.passes > 1 ? " in " + std::to_string(report.passes) + " passes" : "") + ", " +
          format_size(report.peak_memory) + " of memory at most in a rank\n";
  text += line.run.output.empty() ? "no result file: name one with -o\n" : "result in " + line.run.output + "\n";
  return text;
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
  if (!report.chosen_columns.empty()) all["chosen_columns"] = report.chosen_columns;
  if (!report.source.column_names.empty()) all["column_names"] = report.source.column_names;
  for (const auto& [name, value] : report.result.attributes()) {
    if (!name.starts_with("precision")) continue;
    std::visit([&](const auto& v) { all[name] = v; }, value);
  }
  for (const ResultDataset& dataset : report.result.datasets()) all["result"][dataset.name] = numbers(dataset);
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace rowmill
