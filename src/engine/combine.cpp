#include "engine/combine.hpp"

#include <stdexcept>

namespace rowmill {

namespace {

void merge_integers(std::int64_t* acc, const std::int64_t* other, const PartialBlock& block, Ops& ops, Queue queue) {
  if (block.combine == Combine::sum) return ops.add(acc, other, block.count, queue);
  if (block.combine == Combine::min) return ops.keep_min(acc, other, block.count, queue);
  ops.keep_max(acc, other, block.count, queue);
}

void merge_doubles(double* acc, const double* other, const PartialBlock& block, Ops& ops, Queue queue) {
  if (block.combine == Combine::min) return ops.keep_min(acc, other, block.count, queue);
  ops.keep_max(acc, other, block.count, queue);
}

void combine_binned(BinnedView sums, Ops& ops, Communicator& communicator, Queue queue) {
  Backend& backend = ops.backend();
  // top, positive and negative lie behind one another: one MAX for the three.
  const std::int64_t count = 3 * sums.count;
  DeviceBuffer tops(backend, static_cast<std::size_t>(count), queue);
  backend.copy(tops.data(), sums.top, static_cast<std::size_t>(count), queue);
  communicator.reduce(backend, tops.data(), count, ElementKind::i8, Combine::max, queue);
  ops.align_binned(sums, reinterpret_cast<const std::int8_t*>(tops.data()), queue);
  backend.copy(sums.top, tops.data(), static_cast<std::size_t>(count), queue);
  communicator.reduce(backend, sums.digits, count, ElementKind::i64, Combine::sum, queue);
}

}  // namespace

void merge_partials(PartialView acc, PartialView other, Ops& ops, Queue queue) {
  for (const PartialBlock& block : acc.layout().blocks()) {
    if (block.combine == Combine::none) continue;
    if (block.kind == ElementKind::binned) {
      ops.merge_binned(acc.binned(block.name), other.binned(block.name), queue);
    } else if (block.kind == ElementKind::i64) {
      merge_integers(acc.i64(block.name), other.i64(block.name), block, ops, queue);
    } else if (block.kind == ElementKind::f64) {
      merge_doubles(acc.f64(block.name), other.f64(block.name), block, ops, queue);
    } else {
      throw std::logic_error("lanes cannot merge the block " + block.name);
    }
  }
}

void combine_ranks(PartialView partial, Ops& ops, Communicator& communicator, Queue queue) {
  if (communicator.size() == 1) return;
  for (const PartialBlock& block : partial.layout().blocks()) {
    if (block.combine == Combine::none) continue;
    if (block.kind == ElementKind::binned) {
      combine_binned(partial.binned(block.name), ops, communicator, queue);
    } else {
      communicator.reduce(ops.backend(), partial.raw(block.name), block.count, block.kind, block.combine, queue);
    }
  }
}

}  // namespace rowmill
