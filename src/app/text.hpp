#pragma once
// What people and programs see on stdout.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "engine/run.hpp"

namespace rowmill {

/// Answers that `rowmill generate` planted in the input's file; empty where there are none.
struct Planted {
  std::vector<double> mean, deviation;
};

/// A short table of the result, with planted answers beside it, and where the result file lies.
std::string result_table(const CommandLine& line, const RunReport& report, const Planted& planted);

/// One JSON object. Arrays of more than 10,000 numbers are given by shape; infinities and NaN as strings.
std::string result_json(const CommandLine& line, const RunReport& report);

/// The files that a source is joined of.
nlohmann::json files_json(const SourceInfo& info);

/// Columns of text, right-aligned but for the first, two spaces apart.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// What `generate` says of the file that it wrote.
std::string wrote_text(const CommandLine& line);

/// A number as people read it: seven significant digits.
std::string format_number(double value);

}  // namespace rowmill
