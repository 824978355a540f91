#include "pipeline/block_pipeline.hpp"

#include <utility>

#include "pipeline/pipeline_impl.hpp"

namespace rowmill {

Lease::Lease(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;
const Block& Lease::block() const {
  return state_->owner.block(state_->slot);
}

BlockPipeline::BlockPipeline(SourceSet sources, const BlockGrid& grid, Shard shard, Backend& backend,
                             PipelineOptions options)
    : impl_(std::make_unique<Impl>(sources, grid, std::move(shard), backend, options)) {}
BlockPipeline::~BlockPipeline() = default;

std::optional<Lease> BlockPipeline::next(Queue consumer) {
  return impl_->next(consumer);
}
void BlockPipeline::stop_before(std::int64_t row) {
  impl_->stop_before(row);
}
std::int64_t BlockPipeline::last_block() const {
  return impl_->last_block();
}
PipelineStats BlockPipeline::stats() const {
  return impl_->stats();
}

std::size_t BlockPipeline::slot_bytes(const SourceSet& sources, const BlockGrid& grid) {
  return SlotLayout::of(sources, grid).bytes;
}

}  // namespace rowmill
