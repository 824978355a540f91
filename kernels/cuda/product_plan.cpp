#include "kernels/cuda/product_plan.hpp"

#include <algorithm>

#include "kernels/precision.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t row_multiple = 16;  ///< of slabs: what tensor cores take at once, and 16 bytes of int8
constexpr std::int64_t most_panel = 1024, panel_multiple = 128;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
std::int64_t round_down(std::int64_t value, std::int64_t multiple) {
  return value / multiple * multiple;
}

Factor factor_of(Precision precision) {
  switch (precision) {
    case Precision::fp64:
      return Factor::f64;
    case Precision::fp32:
      return Factor::f32;
    case Precision::tf32:
      return Factor::tf32;
    case Precision::bf16:
    case Precision::bf16x3:
      return Factor::bf16;
    case Precision::fp16:
      return Factor::f16;
    case Precision::int8:
      return Factor::i8;
  }
  return Factor::f64;
}

/// Elements of a row or column so that each begins at a multiple of 16 bytes.
std::int64_t padded(std::int64_t count, std::int64_t bytes) {
  return round_up(count, 16 / bytes);
}

/// A whole triangle where its sums are few; else panels of an eighth of the columns: what a panel computes above the
/// diagonal is then at most a sixteenth of the whole, and calls stay large.
std::int64_t panel_columns(Factor factor, std::int64_t columns, std::int64_t leading, std::int64_t limit) {
  const std::int64_t row_bytes = leading * sum_bytes_of(factor);
  if (factor == Factor::f64 && columns * row_bytes <= limit) return columns;
  const std::int64_t wanted = std::clamp(round_up((columns + 7) / 8, panel_multiple), panel_multiple, most_panel);
  const std::int64_t fits = std::max(row_multiple, round_down(limit / row_bytes, row_multiple));
  return std::min({columns, wanted, fits});
}

std::vector<Panel> panels_of(Factor factor, std::int64_t columns, std::int64_t leading, std::int64_t limit) {
  std::vector<Panel> panels;
  const std::int64_t each = panel_columns(factor, columns, leading, limit);
  for (std::int64_t first = 0; first < columns; first += each) {
    const std::int64_t count = std::min(each, columns - first);
    const std::int64_t bytes = sum_bytes_of(factor);
    panels.push_back({first, count, padded(count, bytes), padded(first + count, bytes)});
  }
  return panels;
}

}  // namespace

ProductPlan::ProductPlan(std::int64_t block_rows, std::int64_t block_columns, const ProductChoice& choice,
                         const ProductLimits& bounds)
    : precision(choice.precision),
      factor(factor_of(precision)),
      limits(bounds),
      rows(block_rows),
      columns(block_columns) {
  const bool is_int8 = precision == Precision::int8;
  product_columns = columns + (is_int8 ? 1 : 0);
  leading = padded(product_columns, bytes_of(factor));
  copies = precision == Precision::bf16x3 ? 4 : 1;

  const std::int64_t fits = round_down(limits.work / (copies * leading * bytes_of(factor)), row_multiple);
  std::int64_t chain = choice.chain_rows;
  if (precision == Precision::fp64) chain = fits;  // fp64 has no slabs: a batch is one
  if (is_int8) chain = int8_chain_rows;
  chain = std::max(row_multiple, std::min(round_down(chain, row_multiple), fits));
  const std::int64_t longest = std::max({rows, limits.rows, std::int64_t{1}});
  slab_rows = std::min(chain, round_up(longest, row_multiple));
  slabs = (rows + slab_rows - 1) / slab_rows;
  longest_slabs = (longest + slab_rows - 1) / slab_rows;
  batch_slabs = std::clamp<std::int64_t>(fits / slab_rows, 1, longest_slabs);
  panels = panels_of(factor, product_columns, leading, limits.sums);
}

std::int64_t ProductPlan::group_slabs(const Panel& panel) const {
  const std::int64_t bytes = panel.elements() * sum_bytes_of(factor);
  return std::clamp<std::int64_t>(limits.sums / bytes, 1, batch_slabs);
}

/// The longest block has a whole batch, of whole groups and perhaps a shorter last one, and perhaps a shorter batch.
std::int64_t ProductPlan::call_slabs(const Panel& panel, std::int64_t wanted) const {
  const std::int64_t group = group_slabs(panel);
  std::int64_t slabs_of_call = group;
  for (const std::int64_t last : {batch_slabs % group, longest_slabs % batch_slabs % group}) {
    if (last >= wanted) slabs_of_call = std::min(slabs_of_call, last);
  }
  return slabs_of_call;
}

std::int64_t ProductPlan::sums_bytes() const {
  std::int64_t most = 0;
  for (const Panel& panel : panels) {
    most = std::max(most, group_slabs(panel) * panel.elements() * sum_bytes_of(factor));
  }
  return most;
}

ProductScratch product_scratch(std::int64_t columns, Precision precision, const ProductLimits& limits) {
  // chains of any length fill the same limits; a block of so many rows fills them in every way
  const ProductPlan plan(std::int64_t{1} << 40, columns, {precision, row_multiple}, limits);
  const std::int64_t row_bytes = plan.copies * plan.leading * bytes_of(plan.factor);
  const std::int64_t least_work = row_bytes * row_multiple;
  const std::int64_t widest = plan.panels.back().leading * plan.panels.front().lines * sum_bytes_of(plan.factor);
  ProductScratch scratch;
  const auto take = [&scratch](std::int64_t bytes) {
    const std::int64_t at = scratch.total;
    scratch.total = round_up(at + bytes, 256);
    return at;
  };
  scratch.work = take(std::max(limits.work, least_work));
  scratch.sums = take(std::max(limits.sums, widest));
  scratch.greatest = take(columns * 8);
  scratch.column_sums = take(plan.product_columns * 8);
  scratch.flag = take(4);
  return scratch;
}

bool offers_product(Precision precision, ElementType type) {
  const bool bytes = size_of(type) == 1;
  if (precision == Precision::int8) return bytes;
  return precision != Precision::bf16x3 || !bytes;  // int8 is exact, and one product instead of four
}

}  // namespace rowmill
