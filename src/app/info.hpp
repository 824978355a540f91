#pragma once
// `rowmill info`: what a file holds, how it is stored, what would be milled, expected time and memory.
#include <string>

#include "app/options.hpp"
#include "comm/world.hpp"

namespace rowmill {

/// Text or JSON for stdout. Throws Error.
std::string describe_input(const CommandLine& line, World& alone);

}  // namespace rowmill
