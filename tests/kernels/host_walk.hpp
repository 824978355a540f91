#pragma once
// Runs all threads of a column walk's kernels (kernels/column_walk.hpp) one after another.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/column_walk.hpp"

namespace rowmill::test {

/// Scratch is poisoned. Vectors where they can be used, unless `elementwise`; returns whether they were.
template <typename Task>
bool walk_on_host(const Block& block, const Task& task, bool elementwise = false) {
  using Part = typename Task::Part;
  const functors::AnyRows rows = functors::any_rows(block);
  const std::int64_t groups = functors::row_groups(rows.rows, rows.columns), chains = groups * rows.columns;
  std::vector<Part> parts(static_cast<std::size_t>(chains));
  std::memset(static_cast<void*>(parts.data()), 0xa5, parts.size() * sizeof(Part));
  const bool in_vectors = functors::with_element(rows.type, [&](auto element) {
    using E = decltype(element);
    constexpr std::int64_t lanes = functors::vector_elements<E>;
    if (elementwise || !functors::walks_in_vectors(rows, groups, lanes)) {
      for (std::int64_t i = 0; i < chains; ++i) functors::walk_elements(rows, task, groups, i, parts.data());
      return false;
    }
    EXPECT_EQ(chains % lanes, 0);
    for (std::int64_t i = 0; i < chains / lanes; ++i) functors::walk_vectors<E>(rows, task, groups, i, parts.data());
    return true;
  });
  const std::int64_t gatherers = functors::gather_threads / functors::gather_columns(rows.columns);
  for (std::int64_t j = 0; j < rows.columns; ++j) {
    std::vector<Part> tree;
    for (std::int64_t y = 0; y < gatherers; ++y)
      tree.push_back(functors::gather<Task>(parts.data(), rows.columns, groups, j, y, gatherers));
    for (std::size_t half = tree.size() / 2; half > 0; half /= 2) {
      for (std::size_t y = 0; y < half; ++y) Task::merge(tree[y], tree[y + half]);
    }
    task.store(j, tree[0]);
  }
  return in_vectors;
}

/// Moments with poison before the call.
struct PoisonedMoments {
  explicit PoisonedMoments(std::int64_t columns)
      : count(static_cast<std::size_t>(columns), -7),
        missing(count),
        sum(count.size(), -7.5),
        second(sum),
        min(sum),
        max(sum) {}
  ColumnMoments view() { return {count.data(), missing.data(), sum.data(), second.data(), min.data(), max.data()}; }
  std::vector<std::int64_t> count, missing;
  std::vector<double> sum, second, min, max;
};

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace rowmill::test
