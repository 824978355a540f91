#include "kernels/cuda/warm_up.hpp"

namespace rowmill::cuda {

namespace {

constexpr std::int64_t size = warm_up_size;
constexpr std::size_t part = size * (size + 1) * 8;  ///< bytes of the greatest array of theirs, rows with gaps

enum Part { elements, mask, row_start, index, counts, missing, sums, seconds, mins, maxs, binned, other, tops, parts };

}  // namespace

std::size_t warm_up_bytes() {
  return parts * part;
}

void warm_up(Ops& ops, ElementType type, std::byte* memory, Queue queue) {
  ops.backend().clear(memory, warm_up_bytes(), queue);
  const auto doubles = [&](Part at) { return reinterpret_cast<double*>(memory + at * part); };
  const auto integers = [&](Part at) { return reinterpret_cast<std::int64_t*>(memory + at * part); };
  const ColumnMoments moments{integers(counts), integers(missing), doubles(sums),
                              doubles(seconds), doubles(mins),     doubles(maxs)};
  Block block;
  block.range = {0, size};
  block.missing = MaskView{reinterpret_cast<const std::uint8_t*>(memory + mask * part), size, size, size};
  const std::byte* const data = memory + elements * part;
  // in vectors, an element at a time, and without any entry
  for (const Rows& rows :
       {Rows(DenseRows{data, type, size, size, size}), Rows(DenseRows{data, type, size, size, size + 1}),
        Rows(CsrRows{integers(row_start), integers(index), data, type, size, size})}) {
    block.x = rows;
    ops.column_moments(block, {}, moments, queue);
    ops.nearest_values(block, doubles(mins), doubles(maxs), queue);
    ops.inspect(block, integers(counts), integers(missing), queue);
  }
  ops.inspect_product(block, doubles(sums), integers(counts), queue);
  ops.add_binned(binned_view(memory + binned * part, size), doubles(sums), queue);
  ops.merge_binned(binned_view(memory + binned * part, size), binned_view(memory + other * part, size), queue);
  ops.align_binned(binned_view(memory + binned * part, size), reinterpret_cast<std::int8_t*>(memory + tops * part),
                   queue);
  ops.add(integers(counts), integers(missing), size, queue);
  ops.keep_min(integers(counts), integers(missing), size, queue);
  ops.keep_max(integers(counts), integers(missing), size, queue);
  ops.keep_min(doubles(mins), doubles(maxs), size, queue);
  ops.keep_max(doubles(mins), doubles(maxs), size, queue);
}

}  // namespace rowmill::cuda
