#pragma once
// What is wrong on a command line, in the environment or in a configuration file, in words that say what to do.
#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "app/options.hpp"

namespace rowmill {

/// Long names of options, without dashes, by command.
using OptionNames = std::map<std::string, std::vector<std::string>>;

/// "; did you mean WORD?" for the word of `known` that is nearest, or nothing where none is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

/// What CLI11 found wrong with a command's words, and where they came from: `arguments` are those of the command line.
std::string explain(const CLI::ParseError& error, const CLI::App& app, const CommandLine& line,
                    const std::vector<std::string>& arguments, const OptionNames& all);

/// CLI11 passes over what it does not know in a configuration file; a misspelt option must not be lost quietly. Throws
/// Error(usage).
void check_config(const CLI::App& app, const OptionNames& all);

}  // namespace rowmill
