#include "app/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "core/printable.hpp"
#include "core/units.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t shown_lines = 12, shown_corner = 8;
constexpr std::size_t cell_width = 80;

using TableRows = std::vector<std::vector<std::string>>;

std::string column_name(const RunReport& report, std::int64_t column) {
  const auto at = static_cast<std::size_t>(column);
  const auto& names = report.source.column_names;
  if (at < names.size()) return names[at];
  return std::to_string(at < report.chosen_columns.size() ? report.chosen_columns[at] : column);
}

std::string left_out(std::int64_t count, std::int64_t shown, const std::string& what) {
  return count > shown ? "… and " + counted(count - shown, "more " + what) + "\n" : "";
}

std::string value_text(double value, bool whole) {
  return whole && std::isfinite(value) ? std::to_string(static_cast<std::int64_t>(value)) : format_number(value);
}

const std::vector<double>* planted_beside(const std::string& name, const Planted& planted) {
  if (name == "mean" && !planted.mean.empty()) return &planted.mean;
  if (name == "std" && !planted.deviation.empty()) return &planted.deviation;
  return nullptr;
}

/// One line a column.
std::string column_table(const RunReport& report, const Planted& planted, const std::vector<Shown>& shown) {
  TableRows rows{{"column"}};
  for (const Shown& dataset : shown) {
    rows[0].push_back(dataset.name);
    if (planted_beside(dataset.name, planted)) rows[0].emplace_back("(planted)");
  }
  const std::int64_t columns = report.input.columns;
  for (std::int64_t j = 0; j < std::min(columns, shown_lines); ++j) {
    const auto at = static_cast<std::size_t>(j);
    std::vector<std::string> row{column_name(report, j)};
    for (const Shown& dataset : shown) {
      row.push_back(value_text(report.result.find(dataset.name)->values[at], dataset.whole));
      const auto* answers = planted_beside(dataset.name, planted);
      if (answers) row.push_back(at < answers->size() ? format_number((*answers)[at]) : "");
    }
    rows.push_back(std::move(row));
  }
  return format_table(rows) + left_out(columns, shown_lines, "column");
}

/// The upper left corner of a data set, whose first axis is rows. Axes as long as there are columns bear their names.
std::string corner_table(const RunReport& report, const ResultDataset& dataset, bool whole) {
  const std::int64_t columns = report.input.columns, values = static_cast<std::int64_t>(dataset.values.size());
  const std::int64_t height = dataset.shape.empty() ? 1 : dataset.shape[0], width = height > 0 ? values / height : 0;
  const auto label = [&](std::int64_t length, std::int64_t at) {
    return length == columns ? column_name(report, at) : std::to_string(at);
  };
  TableRows rows{{dataset.name}};
  for (std::int64_t j = 0; width > 1 && j < std::min(width, shown_corner); ++j) rows[0].push_back(label(width, j));
  for (std::int64_t i = 0; i < std::min(height, shown_corner); ++i) {
    rows.push_back({height > 1 ? label(height, i) : ""});
    for (std::int64_t j = 0; j < std::min(width, shown_corner); ++j) {
      rows.back().push_back(value_text(dataset.values[static_cast<std::size_t>(i * width + j)], whole));
    }
  }
  std::string text = format_table(rows) + left_out(width, shown_corner, "column");
  if (height != width) text += left_out(height, shown_corner, "row");
  return text;
}

}  // namespace

std::string result_tables(const RunReport& report, const Planted& planted, std::vector<Shown> shown) {
  if (shown.empty()) {
    for (const ResultDataset& dataset : report.result.datasets()) shown.push_back({dataset.name});
  }
  std::vector<Shown> of_columns;
  std::string text;
  const auto add = [&](const std::string& table) { text += (text.empty() ? "" : "\n") + table; };
  const auto add_columns = [&] {
    if (!of_columns.empty()) add(column_table(report, planted, of_columns));
    of_columns.clear();
  };
  for (const Shown& wanted : shown) {
    const ResultDataset* const dataset = report.result.find(wanted.name);
    if (dataset == nullptr) continue;
    if (dataset->shape == std::vector<std::int64_t>{report.input.columns}) {
      of_columns.push_back(wanted);
    } else {
      add_columns();
      add(corner_table(report, *dataset, wanted.whole));
    }
  }
  add_columns();
  return text;
}

std::string format_number(double value) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

std::string format_table(const TableRows& rows) {
  TableRows cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t k = 0; k < row.size(); ++k) {
      row[k] = shortened(printable(row[k]), cell_width);
      widths[k] = std::max(widths[k], width_of(row[k]));
    }
  }
  std::string text;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::string pad(widths[k] - width_of(row[k]), ' ');
      line += k == 0 ? row[k] + pad : "  " + pad + row[k];
    }
    text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace rowmill
