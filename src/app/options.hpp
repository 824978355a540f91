#pragma once
// The command line: one set of options a command. What is not built is not in --help.
#include <optional>
#include <string>

#include "engine/run.hpp"
#include "io/generate.hpp"

namespace rowmill {

struct CommandLine {
  std::string command;  ///< "info", "stats", "gram", "cov", "generate"
  RunOptions run;
  GenerateOptions generate;
  bool json = false;
  std::string log_level = "warn";
};

/// What parsing came to: a command to run, or text to print (help, version, a mistake) and an exit code.
struct Parsed {
  std::optional<CommandLine> line;
  std::string text;
  int exit_code = 0;
};

/// Never prints, never exits. Defaults come from ROWMILL_<OPTION> and --config; the command line wins.
Parsed parse_command_line(int argc, const char* const* argv);

}  // namespace rowmill
