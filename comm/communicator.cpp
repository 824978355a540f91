#include "comm/communicator.hpp"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "comm/reducible.hpp"

namespace rowmill {

std::string describe(const Heartbeat& heartbeat) {
  switch (heartbeat.stage) {
    case Heartbeat::Stage::starting:
      return "starting";
    case Heartbeat::Stage::planning:
      return "planning";
    case Heartbeat::Stage::milling:
      return heartbeat.block < 0 ? "milling" : "milling block " + std::to_string(heartbeat.block);
    case Heartbeat::Stage::combining:
      return "combining";
    case Heartbeat::Stage::finishing:
      return "finishing";
    case Heartbeat::Stage::writing:
      return "writing";
  }
  return "?";
}

bool precedes(const Failure& a, const Failure& b) {
  if (a.row.has_value() != b.row.has_value()) return !a.row;
  return a.row && *a.row < *b.row;
}

void Communicator::reduce_all(Backend& backend, std::span<const Reduction> reductions, Queue queue) {
  for (const Reduction& one : reductions) reduce(backend, one.data, one.count, one.kind, one.how, queue);
}

/// Of a rank that is alone.
void Communicator::end_all(const std::string& text) {
  std::fprintf(stderr, "rowmill: error: %s\n", text.c_str());
  ::_exit(static_cast<int>(ExitCode::device));
}

std::size_t reducible_bytes(ElementKind kind) {
  switch (kind) {
    case ElementKind::i8:
      return 1;
    case ElementKind::i32:
      return 4;
    case ElementKind::i64:
    case ElementKind::f64:
      return 8;
    case ElementKind::binned:
      break;
  }
  throw std::invalid_argument("binned elements are reduced digit by digit, not as they are");
}

void check_reducible(ElementKind kind, Combine how, std::int64_t count) {
  reducible_bytes(kind);
  if (how == Combine::none) throw std::invalid_argument("scratch is not reduced");
  if (kind == ElementKind::f64 && how == Combine::sum) {
    throw std::invalid_argument("a sum of float64 over ranks would depend on their order");
  }
  if (count < 0) throw std::invalid_argument("negative count to reduce");
}

}  // namespace rowmill
