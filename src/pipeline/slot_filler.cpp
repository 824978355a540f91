#include "pipeline/slot_filler.hpp"

#include <variant>

namespace rowmill {

SlotFiller::SlotFiller(const SourceSet& sources, const BlockGrid& grid, Backend& backend, int slots)
    : grid_(grid),
      backend_(backend),
      layout_(SlotLayout::of(sources, grid)),
      copies_(backend.make_queue()),
      arena_(backend, copies_, layout_.bytes, slots) {}

void SlotFiller::fill(int slot, SlotContent& content, std::int64_t block_id) noexcept {
  try {
    const bool unified = backend_.unified();
    backend_.wait_host(unified ? content.consumed : content.copied);
    content.block = Block{block_id, grid_.range(block_id), {}, {}, {}, {}};
    content.bytes = 0;
    read(slot, content);
    if (!unified) upload(slot, content);
  } catch (...) {
    content.error = std::current_exception();
  }
}

void SlotFiller::read(int slot, SlotContent& content) {
  Block& block = content.block;
  const auto read_part = [&](const SlotLayout::Part& part) {
    content.bytes += static_cast<std::int64_t>(part.source->bytes_for(block.range));
    // what needs memory of its own for reading decompresses, in a helper
    const bool decompresses = part.source->info().reader_bytes > 0;
    const NamedRange range(backend_, decompresses ? "decompress" : "read");
    return part.source->read(block.range, std::span(arena_.staging(slot) + part.offset, part.bytes));
  };
  const auto& [x, y, weights] = layout_.parts;
  const SourceRows rows = read_part(x);
  block.x = rows.rows;
  block.missing = rows.missing;
  if (y.source != nullptr) block.y = std::get<DenseRows>(read_part(y).rows);
  if (weights.source != nullptr) block.weights = std::get<DenseRows>(read_part(weights).rows);
}

void SlotFiller::upload(int slot, SlotContent& content) {
  const NamedRange range(backend_, "copy");
  Block& block = content.block;
  std::byte *from = arena_.staging(slot), *to = arena_.device(slot);
  // The queue waits here, not the reader: the next block is read while this one's consumer still works.
  backend_.wait(copies_, content.consumed);
  for (const SlotLayout::Part& part : layout_.parts) {
    if (part.source == nullptr) continue;
    backend_.copy(to + part.offset, from + part.offset, part.source->bytes_for(block.range), copies_);
  }
  content.copied = backend_.record(copies_);
  block.x = rebase(block.x, from, to);
  if (block.y) block.y = std::get<DenseRows>(rebase(*block.y, from, to));
  if (block.weights) block.weights = std::get<DenseRows>(rebase(*block.weights, from, to));
  if (block.missing) block.missing = rebase(*block.missing, from, to);
}

void SlotFiller::drain(std::span<const SlotContent* const> contents) noexcept {
  // By way of our own queue: waiting for the consumers' events would take from them what failed there.
  try {
    for (const SlotContent* content : contents) backend_.wait(copies_, content->consumed);
    backend_.wait_host(backend_.record(copies_));
  } catch (...) {
    // Consumers that waited for these copies have the failure too.
  }
}

}  // namespace rowmill
