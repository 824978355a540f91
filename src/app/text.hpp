#pragma once
// What people and programs see on stdout.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/options.hpp"
#include "app/table.hpp"
#include "engine/run.hpp"

namespace rowmill {

/// A short table of the result, with planted answers beside it, and where the result file lies.
std::string result_table(const CommandLine& line, const RunReport& report, const Planted& planted);

/// One JSON object. Arrays of more than 10,000 numbers are given by shape; infinities and NaN as strings.
std::string result_json(const CommandLine& line, const RunReport& report);

/// The files that a source is joined of.
nlohmann::json files_json(const SourceInfo& info);

/// What `generate` says of the file that it wrote.
std::string wrote_text(const CommandLine& line);

/// What to say where standard output cannot be written.
std::string lost_text(const CommandLine& line);

/// A JSON object as it is printed.
std::string json_text(const nlohmann::json& value);

/// A file's or data set's name in a line of text: without control characters, not without end.
std::string heading_name(const std::string& name);

}  // namespace rowmill
