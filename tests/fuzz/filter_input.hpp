#pragma once
// How an input of filters_fuzz is laid out: steps (1 byte), mask (1), bytes of the storage chunk (2, little-endian),
// for each step a filter (1, into kFuzzedFilters) with its number of values (1) and the values (4 each, little-endian),
// and what is stored.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "io/filters/filters.hpp"

namespace rowmill::test {

inline constexpr std::array<std::uint32_t, 10> kFuzzedFilters = {1, 2, 3, 4, 32000, 32001, 32004, 32008, 32015, 6};
inline constexpr std::size_t kMostFuzzedBytes = 65535, kMostFuzzedSteps = 4, kMostFuzzedValues = 8;

struct FilterInput {
  std::vector<FilterStep> steps;
  std::uint32_t mask = 0;
  std::size_t bytes = 0;
  std::span<const std::uint8_t> stored;
};

/// What is missing reads as 0.
inline FilterInput parse_filter_input(std::span<const std::uint8_t> data) {
  std::size_t at = 0;
  const auto number = [&](int bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < bytes && at < data.size(); ++i) value |= std::uint32_t{data[at++]} << 8 * i;
    return value;
  };
  FilterInput input;
  input.steps.resize(number(1) % (kMostFuzzedSteps + 1));
  input.mask = number(1);
  input.bytes = number(2);
  for (FilterStep& step : input.steps) {
    step.id = kFuzzedFilters[number(1) % kFuzzedFilters.size()];
    step.values.resize(number(1) % (kMostFuzzedValues + 1));
    for (std::uint32_t& value : step.values) value = number(4);
  }
  input.stored = data.subspan(at);
  return input;
}

}  // namespace rowmill::test
