#include "app/checks.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <tuple>

#include "core/error.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

template <typename Number>
bool read_all(const std::string& text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && after == end && !text.empty();
}

std::string in_quotes(const std::string& text) {
  return std::string("'").append(text).append("'");
}

std::string short_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

CLI::Validator whole_number_within(std::int64_t low, std::int64_t high) {
  const std::string least = std::to_string(low), most = std::to_string(high);
  std::string range("of "), shown("NONNEGATIVE");
  if (high == kNoLimit) {
    range.append(least).append(" or more");
  } else {
    range.assign("from ").append(least).append(" to ").append(most);
    shown.assign("INT in [").append(least).append(" - ").append(most).append("]");
  }
  const auto check = [=](std::string& text) {
    std::int64_t value = 0;
    if (!read_all(text, value) || value < low || value > high)
      return in_quotes(text) + " is not a whole number " + range;
    text = std::to_string(value);  // a leading 0 would mean octal to CLI11
    return std::string();
  };
  return CLI::Validator(check, shown);
}

CLI::Validator unsigned_number() {
  const auto check = [](std::string& text) {
    std::uint64_t value = 0;
    if (!read_all(text, value)) return in_quotes(text) + " is not a whole number from 0 to 2^64 - 1";
    text = std::to_string(value);
    return std::string();
  };
  return CLI::Validator(check, "");
}

CLI::Validator number_within(double low, double high) {
  const bool limited = high < std::numeric_limits<double>::max();
  const bool any = !limited && low < 0;
  const std::string range = any       ? ""
                            : limited ? " from " + short_text(low) + " to " + short_text(high)
                                      : " of " + short_text(low) + " or more";
  const auto check = [=](std::string& text) {
    double value = 0;
    if (read_all(text, value) && std::isfinite(value) && value >= low && value <= high) return std::string();
    return in_quotes(text) + " is not a finite number" + range;
  };
  return CLI::Validator(check, any       ? ""
                               : limited ? "in [" + short_text(low) + " - " + short_text(high) + "]"
                                         : "NONNEGATIVE");
}

CLI::Validator positive_number() {
  const auto check = [](std::string& text) {
    double value = 0;
    if (read_all(text, value) && std::isfinite(value) && value > 0) return std::string();
    return in_quotes(text) + " is not a finite number above 0";
  };
  return CLI::Validator(check, "POSITIVE");
}

CLI::Validator not_empty() {
  return CLI::Validator([](std::string& text) { return std::string(text.empty() ? "is empty; leave it out" : ""); },
                        "");
}

CLI::Validator config_file() {
  const auto check = [](std::string& path) -> std::string {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) return path + ": " + std::strerror(errno);
    if (!S_ISREG(status.st_mode)) return path + ": is not a regular file: write the options into one";
    if (status.st_size > (1 << 20)) return path + ": is larger than a configuration file may be (1 MiB)";
    return "";
  };
  return CLI::Validator(check, "FILE");
}

namespace {

std::int64_t whole_number(const std::string& text, const std::string& what) {
  std::int64_t value = 0;
  if (!read_all(text, value)) throw Error(ExitCode::usage, what + ": " + in_quotes(text) + " is not a whole number");
  return value;
}

}  // namespace

std::pair<std::int64_t, std::optional<std::int64_t>> half_open(const std::string& text, const std::string& what) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    throw Error(ExitCode::usage, what + " takes A:B, first row and the row behind the last");
  const std::string from = text.substr(0, colon), to = text.substr(colon + 1);
  std::optional<std::int64_t> end;
  if (!to.empty()) end = whole_number(to, what);
  return {from.empty() ? 0 : whole_number(from, what), end};
}

namespace {

ColumnRange column_range(const std::string& text) {
  if (text.empty()) throw Error(ExitCode::usage, "--columns: a column is missing beside a comma; it takes 0,3,5:9");
  std::int64_t first = 0;
  std::optional<std::int64_t> last;
  if (text.find(':') == std::string::npos) {
    last = first = whole_number(text, "--columns");
  } else {
    std::tie(first, last) = half_open(text, "--columns");
    if (last && *last <= first)
      throw Error(ExitCode::usage, "--columns: " + in_quotes(text) + " is not a range A:B with A < B");
    if (last) --*last;
  }
  if (first < 0) throw Error(ExitCode::usage, "--columns: " + in_quotes(text) + " is below 0, the first column");
  return {first, last};
}

}  // namespace

std::vector<ColumnRange> column_list(const std::string& text) {
  std::vector<ColumnRange> columns;
  if (text == ":") return columns;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    columns.push_back(column_range(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return columns;
}

std::pair<std::int64_t, std::int64_t> two_sizes(const std::string& text, const std::string& what) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) throw Error(ExitCode::usage, what + " takes ROWSxCOLUMNS, as in 100000x64");
  return {whole_number(text.substr(0, cross), what), whole_number(text.substr(cross + 1), what)};
}

}  // namespace rowmill
