#pragma once
// Runs every kernel of a type once.
#include <cstddef>
#include <cstdint>

#include "kernels/ops.hpp"

namespace rowmill::cuda {

/// Rows and columns of the blocks below.
constexpr std::int64_t warm_up_size = 16;

/// Each operation but cross_product on a few rows of zeros of each layout. The queue is prepared for that size. CUDA
/// loads a kernel when it is first launched, which may wait for the whole device: that must not happen while a
/// collective of NCCL runs. Queues; `memory` must live until that is done.
std::size_t warm_up_bytes();
void warm_up(Ops& ops, ElementType type, std::byte* memory, Queue queue);

}  // namespace rowmill::cuda
