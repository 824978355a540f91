// Any text as the header of a .npy file: an input error, or extents and a type that hold together.
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "io/npy_header.hpp"
#include "tests/fuzz/fuzz_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rowmill;
  try {
    const NpyHeader header = parse_npy_header({reinterpret_cast<const char*>(data), size}, "a.npy");
    for (const std::int64_t extent : header.shape) {
      if (extent < 0) std::abort();
    }
    if (size_of(npy_element(header.descr, "a.npy")) == 0) std::abort();
  } catch (const Error& e) {
    if (e.code() != ExitCode::input) std::abort();
  }
  return 0;
}
