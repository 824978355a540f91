#pragma once
// Partials of lanes and ranks become one.
#include "comm/communicator.hpp"
#include "core/partial.hpp"

namespace rowmill {

/// Combines the partial over all ranks, in place, exactly: counts by sum, binned sums by a MAX of top digits, an
/// alignment, and an integer SUM. Throws what Communicator::reduce throws.
void combine_ranks(HostPartial& partial, Communicator& communicator);

}  // namespace rowmill
