#pragma once
// Random data to reduce, and what must come out.
#include <algorithm>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "core/partial.hpp"

namespace rowmill::testing {

/// What `rank` brings; every rank can make that of every other.
template <typename T>
std::vector<T> data_of(std::uint64_t seed, int rank, std::int64_t count) {
  std::mt19937_64 random(seed + 7919 * static_cast<std::uint64_t>(rank));
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    if constexpr (std::is_same_v<T, double>) {
      value = std::normal_distribution<double>(0, 1e3)(random);
    } else if constexpr (std::is_same_v<T, std::int8_t>) {
      value = static_cast<T>(static_cast<int>(random() % 31) - 15);  // eight ranks' sum fits
    } else {
      value = static_cast<T>(static_cast<std::int64_t>(random()) >> (sizeof(T) == 8 ? 4 : 36));
    }
  }
  return values;
}

template <typename T>
std::vector<T> expected(std::uint64_t seed, int ranks, std::int64_t count, Combine how) {
  std::vector<T> all = data_of<T>(seed, 0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<T> one = data_of<T>(seed, rank, count);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (how == Combine::sum) all[i] = static_cast<T>(all[i] + one[i]);
      if (how == Combine::min) all[i] = std::min(all[i], one[i]);
      if (how == Combine::max) all[i] = std::max(all[i], one[i]);
    }
  }
  return all;
}

}  // namespace rowmill::testing
