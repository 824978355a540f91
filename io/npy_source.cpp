#include "io/npy_source.hpp"

#include <array>
#include <cstring>

#include "core/error.hpp"
#include "io/npy_header.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kMaxHeaderBytes = 1 << 20;

struct Preamble {
  std::int64_t header_at = 0, header_bytes = 0;
};

Preamble read_preamble(const ReadFile& file) {
  std::array<unsigned char, 12> bytes = {};
  const std::int64_t got = file.read_some(0, std::as_writable_bytes(std::span(bytes)));
  if (got < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) {
    throw Error(ExitCode::input, file.path() + ": is not a .npy file");
  }
  const int major = bytes[6];
  if (major < 1 || major > 3) {
    throw Error(ExitCode::input, file.path() + ": is a .npy file of version " + std::to_string(major) +
                                     ", which is not known: the file is damaged");
  }
  const int length_bytes = major == 1 ? 2 : 4;
  Preamble preamble{8 + length_bytes, 0};
  for (int i = length_bytes; i-- > 0;)
    preamble.header_bytes = preamble.header_bytes * 256 + bytes[8U + static_cast<unsigned>(i)];
  if (got < preamble.header_at || preamble.header_bytes > kMaxHeaderBytes ||
      preamble.header_at + preamble.header_bytes > file.bytes()) {
    throw Error(ExitCode::input, file.path() + ": the .npy header is longer than the file: it is truncated or damaged");
  }
  return preamble;
}

}  // namespace

InputPlan plan_npy(const ReadFile& file, int row_axis, std::int64_t row_limit) {
  const Preamble preamble = read_preamble(file);
  std::string text(static_cast<std::size_t>(preamble.header_bytes), '\0');
  file.read(preamble.header_at, std::as_writable_bytes(std::span(text)), 0);
  const NpyHeader header = parse_npy_header(text, file.path());
  InputPlan plan;
  plan.path = file.path();
  plan.format = "npy";
  plan.way = Way::contiguous;
  plan.shape = header.shape;
  plan.row_axis = row_axis;
  plan.fortran = header.fortran_order;
  plan.type = npy_element(header.descr, file.path());
  plan.stored_type = header.descr.substr(1) == "b1" ? "bool" : name_of(plan.type.dtype);
  plan.storage = header.fortran_order ? "contiguous, Fortran order" : "contiguous";
  plan.offset = preamble.header_at + preamble.header_bytes;
  plan.file_bytes = file.bytes();
  plan.modified_ns = file.modified_ns();
  check_plan(plan, row_limit);
  return plan;
}

}  // namespace rowmill
