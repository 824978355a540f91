#include <algorithm>
#include <cstdint>

#include "kernels/functors.hpp"
#include "kernels/host/kernels.hpp"

// Entry by entry, in the order that they lie; what rows do not hold is added at the end, all zeros of a column at once.
// A sum is one chain of a column's entries.
namespace rowmill::host {

namespace {

template <typename E>
void add_entries(const CsrRows& rows, const ColumnMap& map, const ColumnMoments& out) {
  const std::byte* from = rows.value;
  const std::int64_t entries = rows.row_start[rows.rows];
  for (std::int64_t k = 0; k < entries; ++k, from += E::bytes) {
    const std::int64_t column = rows.index[k];
    const double stored = E::value(E::load(from));
    if (E::may_be_missing && stored != stored) {
      ++out.missing[column];
      continue;
    }
    const double w = functors::working_of(map, column)(stored);
    ++out.count[column];
    out.sum[column] += w;
    out.second[column] += w * w;
    out.min[column] = std::min(out.min[column], stored);
    out.max[column] = std::max(out.max[column], stored);
  }
}

void add_zeros(std::int64_t rows, const ColumnMap& map, std::int64_t columns, const ColumnMoments& out) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const std::int64_t zeros = rows - out.count[j] - out.missing[j];
    if (zeros == 0) continue;
    const double w = functors::working_of(map, j)(0.0);
    out.count[j] += zeros;
    out.sum[j] += static_cast<double>(zeros) * w;
    out.second[j] += static_cast<double>(zeros) * (w * w);
    out.min[j] = std::min(out.min[j], 0.0);
    out.max[j] = std::max(out.max[j], 0.0);
  }
}

}  // namespace

void sparse_moments(const Block& block, ColumnMap map, ColumnMoments out) {
  const auto& rows = std::get<CsrRows>(block.x);
  functors::with_element(rows.type, [&](auto element) { add_entries<decltype(element)>(rows, map, out); });
  add_zeros(rows.rows, map, rows.columns, out);
}

}  // namespace rowmill::host
