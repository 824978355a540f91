#include "core/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <memory>

namespace rowmill {

void start_log(const std::string& level, int rank, int ranks) {
  auto logger = std::make_shared<spdlog::logger>("rowmill", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern(ranks > 1 ? "rowmill[" + std::to_string(rank) + "]: %l: %v" : "rowmill: %l: %v");
  // whoever turns the log off still has to learn why the run ended
  logger->set_level(std::min(spdlog::level::from_str(level), spdlog::level::err));
  spdlog::set_default_logger(logger);
}

}  // namespace rowmill
