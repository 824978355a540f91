#include "engine/combine.hpp"

#include <stdexcept>
#include <vector>

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

/// top, positive and negative of a binned block lie behind one another: one MAX for the three.
struct Tops {
  BinnedView sums;
  DeviceBuffer greatest;  ///< of all ranks, once reduced

  std::int64_t count() const { return 3 * sums.count; }  ///< of the tops, and of the digits
  std::size_t bytes() const { return static_cast<std::size_t>(count()); }
};

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
  Backend& backend = ops.backend();
  std::vector<Tops> tops;
  // Two rounds, each sent together: all but the digits, then these, brought to common tops.
  std::vector<Reduction> first, digits;
  for (const PartialBlock& block : partial.layout().blocks()) {
    if (block.combine == Combine::none) continue;
    if (block.kind != ElementKind::binned) {
      first.push_back({partial.raw(block.name), block.count, block.kind, block.combine});
      continue;
    }
    const BinnedView sums = partial.binned(block.name);
    const Tops& one =
        tops.emplace_back(Tops{sums, DeviceBuffer(backend, static_cast<std::size_t>(3 * sums.count), queue)});
    backend.copy(one.greatest.data(), sums.top, one.bytes(), queue);
    first.push_back({one.greatest.data(), one.count(), ElementKind::i8, Combine::max});
    digits.push_back({sums.digits, one.count(), ElementKind::i64, Combine::sum});
  }
  communicator.reduce_all(backend, first, queue);
  for (const Tops& one : tops) {
    ops.align_binned(one.sums, reinterpret_cast<const std::int8_t*>(one.greatest.data()), queue);
    backend.copy(one.sums.top, one.greatest.data(), one.bytes(), queue);
  }
  communicator.reduce_all(backend, digits, queue);
}

}  // namespace rowmill
