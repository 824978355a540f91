// Any bytes as a plan that a rank receives: an error, or a plan that check_plan() refuses or that holds together.
#include <cstring>

#include "core/error.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/plan_check.hpp"

namespace rowmill::test {
namespace {

constexpr std::int64_t kRowLimit = 1 << 20;

void check_with_parts(const InputPlan& plan) {
  check_plan(plan, kRowLimit);
  require_sound(plan);
  require(plan.columns() * static_cast<std::int64_t>(size_of(plan.type)) <= kRowLimit);
  for (const InputPlan& part : plan.parts) check_with_parts(part);
}

}  // namespace
}  // namespace rowmill::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rowmill;
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  try {
    test::check_with_parts(deserialise_plan(bytes));
  } catch (const Error&) {
    // no plan, or none that could be read
  }
  return 0;
}
