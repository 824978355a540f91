#pragma once
// Partials of lanes and ranks become one, where they lie.
#include "comm/communicator.hpp"
#include "core/partial.hpp"
#include "kernels/ops.hpp"

namespace rowmill {

/// acc += other, two partials of one layout in device memory.
void merge_partials(PartialView acc, PartialView other, Ops& ops, Queue queue);

/// Combines the partial (device memory) over all ranks, in place, exactly: counts by sum, binned sums by a MAX of top
/// digits, an alignment, and an integer SUM. Throws what Communicator::reduce throws.
void combine_ranks(PartialView partial, Ops& ops, Communicator& communicator, Queue queue);

}  // namespace rowmill
