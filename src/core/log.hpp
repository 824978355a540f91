#pragma once
// Logging to stderr with the rank in front where there are several.
#include <spdlog/spdlog.h>

#include <string>

namespace rowmill {

/// level: "trace", "debug", "info", "warn", "error", "off"; the error that ends a run is said at any of them. Replaces
/// spdlog's default logger by one that writes to stderr. With one rank lines begin "rowmill: ", with several
/// "rowmill[rank]: ".
void start_log(const std::string& level, int rank, int ranks);

}  // namespace rowmill
