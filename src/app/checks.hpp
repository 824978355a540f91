#pragma once
// Checks and readings of numbers and words on the command line, in the environment and in a configuration file.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run.hpp"

namespace rowmill {

/// A whole decimal number, low to high (both included), for Option::transform, since a leading 0 is taken away. Text
/// that does not fit the type is refused, not clipped.
CLI::Validator whole_number_within(std::int64_t low, std::int64_t high);

/// A whole decimal number of 64 bits without sign.
CLI::Validator unsigned_number();

/// A finite number, low to high (both included): neither NaN nor an infinity.
CLI::Validator number_within(double low, double high);

/// A finite number above 0.
CLI::Validator positive_number();

/// Text that is not empty (an empty shell variable must not quietly mean the default) and that `read`, which throws
/// Error where it cannot, makes something of.
CLI::Validator read_by(std::function<void(const std::string&)> read);

/// The name of a file to write: neither empty nor an option that stands where a name was forgotten.
CLI::Validator file_name();

/// A regular file of at most 1 MiB: it is read twice, so that it must not be a pipe, and whole.
CLI::Validator config_file();

/// "A:B", "A:", ":B", ":" → first and end (not included), A < B. `what` is "row" or "column"; throws Error(usage), as
/// the next two.
std::pair<std::int64_t, std::optional<std::int64_t>> half_open(const std::string& text, const std::string& what);

/// "0,3,5:9,20:" → 0, 3, 5 to 8, and all from 20 on; ":" alone → none, which means all.
std::vector<ColumnRange> column_list(const std::string& text);

/// "100000x64" → {100000, 64}.
std::pair<std::int64_t, std::int64_t> two_sizes(const std::string& text);

}  // namespace rowmill
