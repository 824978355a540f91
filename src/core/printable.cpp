#include "core/printable.hpp"

#include <cstdio>

namespace rowmill {

namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool continues(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

/// Bytes of the UTF-8 character that begins here; 0 if none does.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const unsigned char lead = byte_at(text, at);
  const std::size_t bytes = lead < 0x80                   ? 1
                            : lead >= 0xc2 && lead < 0xe0 ? 2
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xf0 && lead < 0xf5 ? 4
                                                          : 0;
  if (bytes > text.size() - at) return 0;
  for (std::size_t k = 1; k < bytes; ++k) {
    if (!continues(byte_at(text, at + k))) return 0;
  }
  return bytes;
}

std::string escaped(unsigned char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\t') return "\\t";
  if (byte == '\r') return "\\r";
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(byte));
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    const unsigned char first = byte_at(text, at);
    // U+0080 to U+009F steer terminals too, and so do their single bytes where a terminal knows no UTF-8
    const bool steers = bytes == 1   ? first < 0x20 || first == 0x7f
                        : bytes == 2 ? first == 0xc2 && byte_at(text, at + 1) < 0xa0
                        : bytes == 0 ? first < 0xa0
                                     : false;
    for (const std::size_t end = at + (bytes == 0 ? 1 : bytes); at < end; ++at) {
      result += steers ? escaped(byte_at(text, at)) : std::string(1, text[at]);
    }
  }
  return result;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) width += continues(byte_at(text, at)) ? 0 : 1;
  return width;
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most || width_of(text) <= most) return text;
  std::size_t at = 0;
  for (std::size_t width = 0; at < text.size(); ++at) {
    if (!continues(byte_at(text, at)) && ++width == most) break;
  }
  return text.substr(0, at) + "…";
}

}  // namespace rowmill
