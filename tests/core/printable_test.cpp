#include "core/printable.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace rowmill {
namespace {

TEST(Printable, ControlCharacters_AreShownAsEscapes) {
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J")
      << "U+009B begins a control sequence";
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J")
      << "as a single byte too";
}

TEST(Printable, OtherText_StaysAsItIs) {
  for (const std::string text : {"", "plain /X", "α × 数 …", "\xff\xfe not utf-8", "\xc3", "back\\slash"}) {
    EXPECT_EQ(printable(text), text);
  }
  EXPECT_EQ(printable("\xe6\x95"), "\xe6\\x95") << "a byte that continues nothing";
  EXPECT_EQ(printable("数"), "数") << "0x95 within a character steers nothing";
}

TEST(Printable, Shortened_CutsAtCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "ab…");
  EXPECT_EQ(shortened("αβγ", 3), "αβγ");
  EXPECT_EQ(shortened("αβγδ", 3), "αβ…");
  EXPECT_EQ(width_of("αβ…x"), 4U);
  EXPECT_EQ(width_of(shortened(std::string(60000, 'n'), 80)), 80U);
}

TEST(Printable, AnError_IsOneLineWithoutControlCharacters) {
  EXPECT_STREQ(Error(ExitCode::input, "a\nb\x1b[2J").what(), "a\\nb\\x1b[2J");
}

}  // namespace
}  // namespace rowmill
