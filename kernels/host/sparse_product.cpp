#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/functors.hpp"
#include "kernels/host/kernels.hpp"
#include "kernels/host/read_tile.hpp"

// A line of the triangle at a time: line i takes from every row that holds column i its entries up to column i. The
// line stays in the first-level cache, and is complete when it is added to the order-free sums, so that no triangle of
// the block is ever written. Which rows hold column i is known by chains, without transposing: each row hangs in the
// chain of the column of its next entry. Lines are sums in plain fp64, one product after another, in an order that the
// entries' places alone decide.
namespace rowmill::host {

namespace {

constexpr std::int64_t none = -1;

/// What lies in the scratch.
struct Chains {
  std::int64_t* next;  ///< for each row: the row behind it in its chain
  std::int64_t* at;    ///< for each row: its next entry
  std::int64_t* head;  ///< for each column: the first row of its chain
  double* line;
  double* dense;                ///< a row written out
  std::int64_t special = none;  ///< the chain of rows that are written out

  Chains(void* scratch, std::int64_t rows, std::int64_t columns)
      : next(static_cast<std::int64_t*>(scratch)),
        at(next + rows),
        head(at + rows),
        line(reinterpret_cast<double*>(head + columns)),
        dense(line + columns) {}
};

/// An infinity or a NaN times what a row does not hold is NaN, as it is in dense rows.
template <typename E>
bool all_finite(const CsrRows& rows, std::int64_t row) {
  if constexpr (E::may_be_missing) {
    for (std::int64_t k = rows.row_start[row]; k < rows.row_start[row + 1]; ++k) {
      if (!std::isfinite(E::value(E::load(rows.value + k * static_cast<std::int64_t>(E::bytes))))) return false;
    }
  }
  return true;
}

bool is_masked(const Block& block, std::int64_t row) {
  if (!block.missing) return false;
  const std::uint8_t* const mask = block.missing->row(row);
  return std::any_of(mask, mask + block.missing->cols, [](std::uint8_t byte) { return byte != 0; });
}

template <typename E>
void hang_up(const Block& block, const CsrRows& rows, Chains& chains) {
  std::fill_n(chains.head, rows.columns, none);
  for (std::int64_t row = rows.rows - 1; row >= 0; --row) {
    const std::int64_t first = rows.row_start[row];
    const bool special = is_masked(block, row) || !all_finite<E>(rows, row);
    if (!special && first == rows.row_start[row + 1]) continue;
    std::int64_t& head = special ? chains.special : chains.head[rows.index[first]];
    chains.at[row] = first;
    chains.next[row] = head;
    head = row;
  }
}

/// line[j] += w_i w_j for the entries j <= i of the rows that hold column i; these move on to their next chains.
template <typename E>
void add_chain(const CsrRows& rows, const Chains& chains, std::int64_t i) {
  constexpr auto bytes = static_cast<std::int64_t>(E::bytes);
  for (std::int64_t row = chains.head[i]; row != none;) {
    const std::int64_t following = chains.next[row], first = rows.row_start[row], at = chains.at[row];
    if (following != none) {
      __builtin_prefetch(rows.index + rows.row_start[following]);
      __builtin_prefetch(rows.value + rows.row_start[following] * bytes);
    }
    const double factor = E::value(E::load(rows.value + at * bytes));
    for (std::int64_t k = first; k <= at; ++k) {
      chains.line[rows.index[k]] += factor * E::value(E::load(rows.value + k * bytes));
    }
    if (at + 1 < rows.row_start[row + 1]) {
      std::int64_t& head = chains.head[rows.index[at + 1]];
      chains.at[row] = at + 1;
      chains.next[row] = head;
      head = row;
    }
    row = following;
  }
}

void add_special(const Block& block, const Chains& chains, std::int64_t i) {
  for (std::int64_t row = chains.special; row != none; row = chains.next[row]) {
    read_tile(block, {row, 1, 0, i + 1}, chains.dense, i + 1);
    for (std::int64_t j = 0; j <= i; ++j) chains.line[j] += chains.dense[i] * chains.dense[j];
  }
}

}  // namespace

std::size_t sparse_product_scratch(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(2 * rows + 3 * columns) * sizeof(double);
}

void add_sparse_product(const Block& block, void* scratch, BinnedView acc) {
  const auto& rows = std::get<CsrRows>(block.x);
  functors::with_element(rows.type, [&](auto element) {
    using E = decltype(element);
    Chains chains(scratch, rows.rows, rows.columns);
    hang_up<E>(block, rows, chains);
    for (std::int64_t i = 0; i < rows.columns; ++i) {
      if (chains.head[i] == none && chains.special == none) continue;  // a line of zeros
      std::fill_n(chains.line, i + 1, 0.0);
      add_chain<E>(rows, chains, i);
      add_special(block, chains, i);
      add_binned(acc, i * (i + 1) / 2, chains.line, i + 1);
    }
  });
}

}  // namespace rowmill::host
