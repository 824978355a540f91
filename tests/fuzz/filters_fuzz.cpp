// Any steps over any bytes: an error, or the storage chunk written whole, the same each time.
#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/filter_input.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace rowmill::test {
namespace {

constexpr std::size_t kMostStoredBytes = 1 << 20;

/// False: an error. Otherwise every byte of `to` must have been written, whatever was there and in the scratch memory.
bool decodes(const FilterChain& chain, const FilterInput& input, std::span<const std::byte> stored,
             std::span<std::byte> to, std::byte before) {
  static MemoryPool pool;
  static FilterScratch scratch(pool);
  std::fill(to.begin(), to.end(), before);
  for (const auto use : {FilterScratch::even_step, FilterScratch::odd_step, FilterScratch::within_step}) {
    const std::span<std::byte> memory = scratch.memory(use, 2 * (input.bytes + input.bytes / 8) + 8192);
    std::fill(memory.begin(), memory.end(), before);
  }
  try {
    chain.decode(stored, input.mask, to, scratch);
  } catch (const FilterError&) {
    return false;
  }
  return true;
}

void run(const FilterInput& input) {
  static const GuardedMemory stored_memory(kMostStoredBytes), first_memory(kMostFuzzedBytes),
      second_memory(kMostFuzzedBytes);
  if (input.stored.size() > kMostStoredBytes) return;
  const std::span<std::byte> stored = stored_memory.last(input.stored.data(), input.stored.size());
  const std::span<std::byte> first = first_memory.last(input.bytes), second = second_memory.last(input.bytes);
  try {
    const FilterChain chain(input.steps);
    const bool good = decodes(chain, input, stored, first, std::byte{0xa5});
    if (decodes(chain, input, stored, second, std::byte{0x5a}) != good) std::abort();
    if (good && !std::equal(first.begin(), first.end(), second.begin())) std::abort();
  } catch (const FilterError&) {
    // steps that are not undone
  }
}

}  // namespace
}  // namespace rowmill::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rowmill::test::run(rowmill::test::parse_filter_input({data, size}));
  return 0;
}
