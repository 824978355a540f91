#pragma once
// Text from strangers (names in a file, words of a command line) made fit for a terminal.
#include <cstddef>
#include <string>
#include <string_view>

namespace rowmill {

/// Control characters as escapes ("\n", "\x1b"): text can then neither steer a terminal nor begin a line. Other bytes
/// stay as they are, UTF-8 or not.
std::string printable(std::string_view text);

/// Characters of UTF-8, which is about the columns that text takes on a screen.
std::size_t width_of(std::string_view text);

/// At most `most` characters; "…" is the last of them where some were cut off.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace rowmill
