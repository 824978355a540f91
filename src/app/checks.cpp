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
#include <utility>

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

CLI::Validator read_by(std::function<void(const std::string&)> read) {
  const auto check = [read = std::move(read)](std::string& text) -> std::string {
    if (text.empty()) return "is empty; leave it out";
    try {
      read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  return CLI::Validator(check, "");
}

CLI::Validator file_name() {
  return read_by([](const std::string& name) {
    if (name.size() < 2 || name[0] != '-') return;
    throw Error(ExitCode::usage, in_quotes(name) + " is no name of a file: give one, as in -o out.h5 (or write ./" +
                                     name + " if that is its name)");
  });
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

std::string without_blanks(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ExitCode::usage, in_quotes(text) + " " + why);
}

std::int64_t index_in(const std::string& text, const std::string& range, const std::string& what) {
  std::int64_t value = 0;
  if (!read_all(without_blanks(text), value)) {
    refuse(range, "is not a range: write A:B in whole numbers, the first " + what + " and the one behind the last");
  }
  if (value < 0) refuse(range, "is below 0: " + what + "s count from 0, and never from the end");
  return value;
}

/// "1-3", as other programs have it.
void refuse_dash(const std::string& text) {
  const std::size_t dash = text.find('-', 1);
  std::int64_t first = 0, last = 0;
  if (dash == std::string::npos || !read_all(without_blanks(text.substr(0, dash)), first) ||
      !read_all(without_blanks(text.substr(dash + 1)), last) || last == kNoLimit) {
    return;
  }
  refuse(text, "is not a range: write " + std::to_string(first) + ":" + std::to_string(last + 1) + " for " +
                   std::to_string(first) + " to " + std::to_string(last));
}

}  // namespace

std::pair<std::int64_t, std::optional<std::int64_t>> half_open(const std::string& text, const std::string& what) {
  refuse_dash(text);
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    const std::int64_t one = index_in(text, text, what);
    if (one == kNoLimit) refuse(text, "is not a range");
    refuse(text, "is not a range: write " + std::to_string(one) + ":" + std::to_string(one + 1) + " for " + what + " " +
                     std::to_string(one) + " alone");
  }
  const std::string from = without_blanks(text.substr(0, colon)), to = without_blanks(text.substr(colon + 1));
  const std::int64_t first = from.empty() ? 0 : index_in(from, text, what);
  if (to.empty()) return {first, std::nullopt};
  const std::int64_t end = index_in(to, text, what);
  if (end == first) refuse(text, "is empty: the end of a range is not in it");
  if (end < first) refuse(text, "ends before it begins: write A:B with A < B");
  return {first, end};
}

namespace {

ColumnRange column_range(const std::string& text) {
  if (text.empty()) throw Error(ExitCode::usage, "a column is missing beside a comma: write 0,3,5:9");
  refuse_dash(text);
  if (text.find(':') == std::string::npos) {
    std::int64_t column = 0;
    if (!read_all(text, column)) refuse(text, "is not a column: write whole numbers and ranges, as in 0,3,5:9");
    if (column < 0) refuse(text, "is below 0: columns count from 0, and never from the end");
    return {column, column};
  }
  auto [first, last] = half_open(text, "column");
  if (last) --*last;
  return {first, last};
}

}  // namespace

std::vector<ColumnRange> column_list(const std::string& text) {
  std::vector<ColumnRange> columns;
  if (without_blanks(text) == ":") return columns;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    columns.push_back(column_range(without_blanks(text.substr(at, comma - at))));
    at = comma + 1;
  }
  return columns;
}

std::pair<std::int64_t, std::int64_t> two_sizes(const std::string& text) {
  const std::size_t cross = text.find('x');
  std::int64_t rows = 0, columns = 0;
  if (cross == std::string::npos || !read_all(text.substr(0, cross), rows) ||
      !read_all(text.substr(cross + 1), columns)) {
    refuse(text, "is not ROWSxCOLUMNS: write 100000x64");
  }
  return {rows, columns};
}

}  // namespace rowmill
