// Any answers of the HDF5 helper: an input error, or a plan that holds together and, where nothing is stored, whose
// rows can be read.
#include <cstdlib>

#include "core/pool.hpp"
#include "io/open.hpp"
#include "io/scratch.hpp"
#include "tests/fuzz/answer_input.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/plan_check.hpp"

namespace rowmill::test {
namespace {

bool is_small_and_unstored(const InputPlan& plan) {
  return (plan.way == Way::fill || !plan.parts.empty()) && bytes_of(plan) <= kAnswersMemory && plan.rows() <= 1000 &&
         std::all_of(plan.parts.begin(), plan.parts.end(), is_small_and_unstored);
}

void read_all(const InputPlan& plan) {
  static MemoryPool pool;
  InputRequest request;
  request.memory_limit = kAnswersMemory;
  const auto source = make_source(serialise(plan), request);
  const RowRange rows{0, source->info().rows};
  const std::size_t bytes = source->bytes_for(rows);
  const Scratch scratch(pool, std::max<std::size_t>(64, bytes));
  source->read(rows, {scratch.data(), std::max<std::size_t>(64, bytes)});
}

void plan_and_read(std::string_view input) {
  const InputPlan plan = plan_of_input(input);
  require_sound(plan);
  for (const InputPlan& part : plan.parts) require_sound(part);
  require(plan.column_names.empty() || static_cast<std::int64_t>(plan.column_names.size()) == plan.columns());
  if (is_small_and_unstored(plan)) read_all(plan);
}

}  // namespace
}  // namespace rowmill::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rowmill;
  try {
    test::plan_and_read({reinterpret_cast<const char*>(data), size});
  } catch (const Error& e) {
    // an axis that is not there is wrong usage
    if (e.code() != ExitCode::input && e.code() != ExitCode::usage) std::abort();
  }
  return 0;
}
