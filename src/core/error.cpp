#include "core/error.hpp"

#include <cstring>

#include "core/printable.hpp"

namespace rowmill {

std::string Error::one_line(const std::string& message) {
  return printable(message);
}

Error system_error(ExitCode code, const std::string& what, int error_number) {
  char buffer[128] = "";
  const char* text = strerror_r(error_number, buffer, sizeof buffer);
  return Error(code, what + ": " + text);
}

}  // namespace rowmill
