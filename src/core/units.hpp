#pragma once
// Sizes and durations as people write them.
#include <chrono>
#include <cstdint>
#include <string>

namespace rowmill {

/// "8GiB", "512 MiB", "64KiB", "1000" (bytes), "1.5GiB", and "2GB" for 2 * 10^9. Throws Error(usage).
std::int64_t parse_size(const std::string& text);
/// "30s", "5m", "1h", "250ms", "10" (seconds). Throws Error(usage).
std::chrono::milliseconds parse_duration(const std::string& text);
/// "1.95 GiB", "512 B".
std::string format_size(std::int64_t bytes);
/// "1,000,000".
std::string grouped(std::int64_t value);
/// "1 row", "20,000 rows".
std::string counted(std::int64_t count, const std::string& what);
/// "3.2 s", "4 min 5 s", "2 h 3 min".
std::string format_duration(double seconds);

}  // namespace rowmill
