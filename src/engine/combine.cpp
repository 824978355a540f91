#include "engine/combine.hpp"

#include <cstring>
#include <memory>

#include "core/backend.hpp"

namespace rowmill {

namespace {

void combine_binned(BinnedView sums, Communicator& communicator, Backend& backend, Queue queue) {
  // top, positive and negative lie behind one another: one MAX for the three.
  std::vector<std::int8_t> tops(sums.top, sums.top + 3 * sums.count);
  communicator.reduce(backend, tops.data(), 3 * sums.count, ElementKind::i8, Combine::max, queue);
  binned_align(sums, tops.data());
  std::memcpy(sums.top, tops.data(), tops.size());
  communicator.reduce(backend, sums.digits, 3 * sums.count, ElementKind::i64, Combine::sum, queue);
}

}  // namespace

void combine_ranks(HostPartial& partial, Communicator& communicator) {
  if (communicator.size() == 1) return;
  const std::unique_ptr<Backend> backend = make_host_backend();
  const Queue queue = backend->make_queue();
  const PartialView view = partial.view();
  for (const PartialBlock& block : view.layout().blocks()) {
    if (block.combine == Combine::none) continue;
    if (block.kind == ElementKind::binned) {
      combine_binned(view.binned(block.name), communicator, *backend, queue);
    } else {
      communicator.reduce(*backend, view.raw(block.name), block.count, block.kind, block.combine, queue);
    }
  }
}

}  // namespace rowmill
