#include "core/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace rowmill {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<Unit, 10> kSizes{{{"", 1},
                                       {"b", 1},
                                       {"kib", 1LL << 10},
                                       {"mib", 1LL << 20},
                                       {"gib", 1LL << 30},
                                       {"tib", 1LL << 40},
                                       {"kb", 1'000},
                                       {"mb", 1'000'000},
                                       {"gb", 1'000'000'000},
                                       {"tb", 1'000'000'000'000}}};
constexpr std::array<Unit, 5> kDurations{{{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whole digits, a fraction, and what follows, without blanks around it and in lower case.
struct Number {
  std::int64_t whole = 0;
  double fraction = 0;
  std::string unit;
};

/// False if the text is not digits[.digits] with something behind it, or the digits do not fit.
bool read_number(std::string_view text, Number& number) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  const char* const end = text.data() + text.size();
  auto [after, whole_error] = std::from_chars(text.data(), end, number.whole);
  if (whole_error != std::errc{}) return false;
  if (after != end && *after == '.') {
    const char* const dot = after;
    const char* digits_end = dot + 1;
    while (digits_end != end && is_digit(*digits_end)) ++digits_end;
    if (digits_end == dot + 1) return false;
    if (std::from_chars(dot, digits_end, number.fraction, std::chars_format::fixed).ec != std::errc{}) return false;
    after = digits_end;
  }
  while (after != end && *after == ' ') ++after;
  for (; after != end; ++after) {
    number.unit += (*after >= 'A' && *after <= 'Z') ? static_cast<char>(*after - 'A' + 'a') : *after;
  }
  return true;
}

/// The number times its unit, rounded to whole; false if there is no such unit or the result does not fit.
bool in_base_units(const Number& number, std::span<const Unit> units, std::int64_t& result) {
  for (const Unit& unit : units) {
    if (unit.name != number.unit) continue;
    const std::int64_t part = std::llround(number.fraction * static_cast<double>(unit.factor));
    std::int64_t whole = 0;
    return !__builtin_mul_overflow(number.whole, unit.factor, &whole) && !__builtin_add_overflow(whole, part, &result);
  }
  return false;
}

/// Three significant digits without zeros at the end.
std::string short_number(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
  std::string text = buffer;
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

std::int64_t parse_size(const std::string& text) {
  Number number;
  std::int64_t bytes = 0;
  if (read_number(text, number) && in_base_units(number, kSizes, bytes)) return bytes;
  throw Error(
      ExitCode::usage,
      "'" + text + "' is not a size: write a number of bytes, or one with KiB, MiB, GiB, TiB, kB, MB, GB or TB");
}

std::chrono::milliseconds parse_duration(const std::string& text) {
  Number number;
  std::int64_t milliseconds = 0;
  // clocks count nanoseconds in 64 bits: a deadline must still fit after this is added to now
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max() / 1'000'000 / 4;
  if (read_number(text, number) && in_base_units(number, kDurations, milliseconds) && milliseconds <= kLongest) {
    return std::chrono::milliseconds(milliseconds);
  }
  throw Error(ExitCode::usage,
              "'" + text + "' is not a duration: write a number of seconds, or one with ms, s, m or h (90s, 5m, 1.5h)");
}

std::string format_size(std::int64_t bytes) {
  // through unsigned, so that the least int64 has an absolute value too
  const auto size = static_cast<std::uint64_t>(bytes);
  double value = static_cast<double>(bytes < 0 ? ~size + 1 : size);
  constexpr std::array<const char*, 7> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (value >= (unit == 0 ? 1024.0 : 1023.5)) {
    value /= 1024.0;
    ++unit;
  }
  return std::string(bytes < 0 ? "-" : "").append(short_number(value)).append(" ").append(kNames.at(unit));
}

std::string grouped(std::int64_t value) {
  const std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  std::string text;
  for (std::size_t k = 0; k < digits.size(); ++k) {
    if (k > sign && (digits.size() - k) % 3 == 0) text += ',';
    text += digits[k];
  }
  return text;
}

std::string counted(std::int64_t count, const std::string& what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return std::string("-").append(format_duration(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995) return short_number(seconds * 1000.0) + " ms";
  char buffer[64];
  if (seconds < 59.95) {
    std::snprintf(buffer, sizeof buffer, "%.1f s", seconds);
    return buffer;
  }
  const double whole = std::round(seconds);
  if (whole < 3600) {
    std::snprintf(buffer, sizeof buffer, "%.0f min %.0f s", std::floor(whole / 60), std::fmod(whole, 60));
    return buffer;
  }
  const double minutes = std::round(seconds / 60);
  std::snprintf(buffer, sizeof buffer, "%.0f h %.0f min", std::floor(minutes / 60), std::fmod(minutes, 60));
  return buffer;
}

}  // namespace rowmill
