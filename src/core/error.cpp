#include "core/error.hpp"

#include <cstring>

namespace rowmill {

std::string Error::one_line(const std::string& message) {
  std::string line = message;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

Error system_error(ExitCode code, const std::string& what, int error_number) {
  char buffer[128] = "";
  const char* text = strerror_r(error_number, buffer, sizeof buffer);
  return Error(code, what + ": " + text);
}

}  // namespace rowmill
