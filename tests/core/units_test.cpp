#include "core/units.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "core/error.hpp"

namespace rowmill {
namespace {

using std::chrono::milliseconds;

template <typename Parse>
void expect_usage_error(Parse parse, const std::string& text) {
  try {
    parse(text);
    ADD_FAILURE() << "accepted '" << text << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << text;
    EXPECT_NE(std::string(error.what()).find("'" + text + "'"), std::string::npos) << error.what();
  }
}

TEST(Units, ParseSize_TakesBytesAndBinaryUnits) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("1000"), 1000);
  EXPECT_EQ(parse_size("512B"), 512);
  EXPECT_EQ(parse_size("64KiB"), 65536);
  EXPECT_EQ(parse_size("512 MiB"), 536870912);
  EXPECT_EQ(parse_size("8GiB"), 8589934592);
  EXPECT_EQ(parse_size("1.5GiB"), 1610612736);
  EXPECT_EQ(parse_size("2TiB"), 2199023255552);
  EXPECT_EQ(parse_size(" 8gib "), 8589934592);
}

TEST(Units, ParseSize_TakesDecimalUnitsAsTheyAre) {
  EXPECT_EQ(parse_size("1kB"), 1000);
  EXPECT_EQ(parse_size("2MB"), 2000000);
  EXPECT_EQ(parse_size("2GB"), 2000000000);
  EXPECT_EQ(parse_size("1.5 gb"), 1500000000);
  EXPECT_EQ(parse_size("3TB"), 3000000000000);
}

TEST(Units, ParseSize_IsExactUpToTheLargestNumber) {
  EXPECT_EQ(parse_size("9007199254740993"), 9007199254740993);
  EXPECT_EQ(parse_size("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_size("8388607TiB"), 8388607LL << 40);
}

TEST(Units, ParseSize_RefusesEverythingElse) {
  for (const std::string text :
       {"", " ", "GiB", "-1", "+1", "1e3", "0x10", "nan", "inf", ".5GiB", "1.GiB", "1..5GiB", "8G", "8GiBs", "8 GiB x",
        "1,5GiB", "9223372036854775808", "8388608TiB", "99999999999999999999GiB"}) {
    expect_usage_error(parse_size, text);
  }
}

TEST(Units, ParseDuration_TakesSecondsAndUnits) {
  EXPECT_EQ(parse_duration("0"), milliseconds(0));
  EXPECT_EQ(parse_duration("10"), milliseconds(10000));
  EXPECT_EQ(parse_duration("250ms"), milliseconds(250));
  EXPECT_EQ(parse_duration("30s"), milliseconds(30000));
  EXPECT_EQ(parse_duration("0.5s"), milliseconds(500));
  EXPECT_EQ(parse_duration("5m"), milliseconds(300000));
  EXPECT_EQ(parse_duration("1h"), milliseconds(3600000));
  EXPECT_EQ(parse_duration("1.5 h"), milliseconds(5400000));
}

TEST(Units, ParseDuration_RefusesEverythingElse) {
  for (const std::string text :
       {"", "s", "-5s", "5 minutes", "1d", "soon", "1h30m", "99999999999999999h", "9000000000h"}) {
    expect_usage_error(parse_duration, text);
  }
}

TEST(Units, ParseDuration_LongestStillFitsAClockTwice) {
  const auto longest = parse_duration("600000h");
  const auto deadline = std::chrono::steady_clock::now() + longest + longest;
  EXPECT_GT(deadline, std::chrono::steady_clock::now());
}

TEST(Units, FormatSize_HasThreeDigitsAndNeverAThousandTwentyFour) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(512), "512 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1 KiB");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(2093796557), "1.95 GiB");
  EXPECT_EQ(format_size(8LL << 30), "8 GiB");
  EXPECT_EQ(format_size(1048575), "1 MiB");
  EXPECT_EQ(format_size(10LL * 1024 * 1024 - 1), "10 MiB");
  EXPECT_EQ(format_size(std::numeric_limits<std::int64_t>::max()), "8 EiB");
  EXPECT_EQ(format_size(std::numeric_limits<std::int64_t>::min()), "-8 EiB");
}

TEST(Units, FormatSize_OfRoundSizesParsesBack) {
  for (int shift = 0; shift < 43; ++shift) EXPECT_EQ(parse_size(format_size(1LL << shift)), 1LL << shift);
}

TEST(Units, Counted_HasASingularAndGroupsOfThree) {
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(2, "external link"), "2 external links");
  EXPECT_EQ(counted(1234567, "row"), "1,234,567 rows");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(999), "999");
}

TEST(Units, FormatDuration_NeverSaysSixty) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(0.0421), "42.1 ms");
  EXPECT_EQ(format_duration(0.9996), "1.0 s");
  EXPECT_EQ(format_duration(3.2), "3.2 s");
  EXPECT_EQ(format_duration(59.94), "59.9 s");
  EXPECT_EQ(format_duration(59.96), "1 min 0 s");
  EXPECT_EQ(format_duration(245), "4 min 5 s");
  EXPECT_EQ(format_duration(119.7), "2 min 0 s");
  EXPECT_EQ(format_duration(3599.6), "1 h 0 min");
  EXPECT_EQ(format_duration(7380), "2 h 3 min");
  EXPECT_EQ(format_duration(7199), "2 h 0 min");
  EXPECT_EQ(format_duration(-3.2), "-3.2 s");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "unknown");
}

}  // namespace
}  // namespace rowmill
