#include "pipeline/pipeline_impl.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace rowmill {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Shard checked(Shard shard, const BlockGrid& grid, const PipelineOptions& options) {
  if (options.slots < 1 || options.io_threads < 1) throw std::invalid_argument("a pipeline without slots or readers");
  const auto outside = [&grid](std::int64_t id) { return id < grid.first_id() || id >= grid.end_id(); };
  if (std::any_of(shard.begin(), shard.end(), outside)) {
    throw std::invalid_argument("a shard with a block that is not of the grid");
  }
  return shard;
}

int cores_of(const PipelineOptions& options) {
  return options.cores > 0 ? options.cores : static_cast<int>(std::thread::hardware_concurrency());
}

/// Not more readers or slots than blocks.
int at_most(int wanted, const Shard& shard) {
  return static_cast<int>(std::min<std::int64_t>(wanted, static_cast<std::int64_t>(shard.size())));
}

}  // namespace

BlockPipeline::Impl::Impl(SourceSet sources, const BlockGrid& grid, Shard shard, Backend& backend,
                          PipelineOptions options)
    : grid_(grid),
      shard_(checked(std::move(shard), grid, options)),
      backend_(backend),
      consumers_read_(options.consumers_read),
      policy_(!backend.unified() || !consumers_read_, cores_of(options), at_most(options.io_threads, shard_)) {
  if (shard_.empty()) return;
  filler_ = std::make_unique<SlotFiller>(sources, grid_, backend_, at_most(options.slots, shard_));
  const auto slots = static_cast<std::size_t>(filler_->slots());
  slots_.resize(slots);
  ring_.resize(slots);
  free_.reserve(slots);
  for (int slot = 0; slot < filler_->slots(); ++slot) free_.push_back(slot);
  end_ = static_cast<std::int64_t>(shard_.size());
  start_readers(at_most(options.io_threads, shard_));
}

void BlockPipeline::Impl::start_readers(int readers) {
  readers_.reserve(static_cast<std::size_t>(readers));
  try {
    while (static_cast<int>(readers_.size()) < readers) readers_.emplace_back([this] { reader_loop(); });
  } catch (const std::system_error&) {
    if (readers_.empty() && !consumers_read_) throw;  // else those that there are will do
  }
}

BlockPipeline::Impl::~Impl() {
  if (!filler_) return;
  {
    Lock lock(mutex_);
    end_ = 0;
    readers_wake_.notify_all();
    consumers_wake_.notify_all();
    idle_.wait(lock, [this] { return held_ == 0; });
  }
  for (std::thread& reader : readers_) reader.join();
  std::vector<const SlotContent*> contents;
  for (const Slot& slot : slots_) contents.push_back(&slot);
  filler_->drain(contents);
}

std::optional<Lease> BlockPipeline::Impl::next(Queue consumer) {
  Lock lock(mutex_);
  policy_.saw_consumer(consumer.id);
  while (true) {
    if (broken_) std::rethrow_exception(std::exchange(broken_, nullptr));
    if (next_out_ >= end_) return std::nullopt;
    if (turn_is_ready()) return take(lock, consumer);
    if (consumers_read_ && may_claim()) {
      if (next_claim_ == next_out_) return read_own(lock, consumer);
      read_ahead_once(lock);
    } else {
      wait_for_turn(lock);
    }
  }
}

bool BlockPipeline::Impl::turn_is_ready() const {
  if (next_out_ >= next_claim_) return false;
  return slots_[static_cast<std::size_t>(slot_of(next_out_))].state == SlotState::ready;
}

std::optional<Lease> BlockPipeline::Impl::take(Lock& lock, Queue consumer) {
  const int slot = slot_of(next_out_++);
  ++held_;
  at(slot).state = SlotState::leased;
  if (at(slot).error) return throw_error(lock, slot);
  wake_consumers();
  return lease(lock, slot, consumer);
}

std::optional<Lease> BlockPipeline::Impl::read_own(Lock& lock, Queue consumer) {
  const int slot = claim(consumer.id);
  const std::int64_t position = next_out_++;
  ++held_;
  wake_consumers();  // another one may take the next turn meanwhile
  read_into(lock, slot);
  at(slot).state = SlotState::leased;
  if (at(slot).error) return throw_error(lock, slot);
  if (failed_ < position) {
    --held_;
    free_slot(slot);
    return std::nullopt;
  }
  return lease(lock, slot, consumer);
}

std::optional<Lease> BlockPipeline::Impl::throw_error(Lock& lock, int slot) {
  // Blocks before this one may still be in the hands of consumers that read them: an error among these comes first.
  const std::int64_t position = at(slot).position;
  settled_.wait(lock, [&] {
    return std::none_of(slots_.begin(), slots_.end(), [&](const Slot& other) {
      return other.state == SlotState::reading && other.position < position;
    });
  });
  const std::exception_ptr error = std::exchange(at(slot).error, nullptr);
  --held_;
  free_slot(slot);
  if (failed_ == position) std::rethrow_exception(error);
  return std::nullopt;
}

void BlockPipeline::Impl::read_ahead_once(Lock& lock) {
  const int slot = claim(-1);
  ++held_;
  read_into(lock, slot);
  at(slot).state = SlotState::ready;
  if (--held_ == 0) idle_.notify_all();
  wake_consumers();
}

void BlockPipeline::Impl::reader_loop() {
  if (!backend_.unified()) backend_.stay_near();  // what is read goes over that node's bus
  Lock lock(mutex_);
  while (true) {
    readers_wake_.wait(lock, [this] { return next_claim_ >= end_ || reader_may_claim(); });
    if (next_claim_ >= end_) return;
    const int slot = claim(-1);
    ++active_readers_;
    read_into(lock, slot);
    --active_readers_;
    at(slot).state = SlotState::ready;
    wake_consumers();
  }
}

void BlockPipeline::Impl::wait_for_turn(Lock& lock) {
  const auto start = Clock::now();
  ++waiting_consumers_;
  consumers_wake_.wait(lock);
  --waiting_consumers_;
  stats_.wait_seconds += seconds_since(start);
}

int BlockPipeline::Impl::claim(int consumer) {
  // A consumer likes the slot that its cache may still hold; else the one that has been free for longest, whose events
  // are reached by now.
  auto found = std::find_if(free_.begin(), free_.end(), [&](int slot) { return at(slot).last_consumer == consumer; });
  if (consumer < 0 || found == free_.end()) found = free_.begin();
  const int slot = *found;
  free_.erase(found);
  at(slot).state = SlotState::reading;
  at(slot).position = next_claim_;
  ring_[static_cast<std::size_t>(next_claim_++ % filler_->slots())] = slot;
  return slot;
}

void BlockPipeline::Impl::free_slot(int slot) {
  at(slot).state = SlotState::free;
  free_.push_back(slot);
  if (held_ == 0) idle_.notify_all();
  wake_consumers();
  if (reader_may_claim()) readers_wake_.notify_one();
}

void BlockPipeline::Impl::wake_consumers() {
  if (waiting_consumers_ == 0) return;
  if (next_out_ >= end_) {
    consumers_wake_.notify_all();
  } else if (turn_is_ready() || (consumers_read_ && may_claim())) {
    consumers_wake_.notify_one();
  }
}

std::optional<Lease> BlockPipeline::Impl::lease(Lock& lock, int slot, Queue consumer) {
  at(slot).last_consumer = consumer.id;
  ++stats_.blocks;
  lock.unlock();  // from here on the lease owns the slot, and hands it back if something throws
  std::optional<Lease> lease = Lease(std::make_unique<Lease::State>(*this, slot, consumer));
  filler_->make_ready(at(slot), consumer);
  return lease;
}

void BlockPipeline::Impl::give_back(int slot, Queue consumer) noexcept {
  Event consumed;
  std::exception_ptr error;
  try {
    consumed = backend_.record(consumer);
  } catch (...) {
    error = std::current_exception();
  }
  const Lock lock(mutex_);
  --held_;
  if (error) {  // nobody knows when the slot will be free: it stays out of use
    broken_ = error;
    end_ = 0;
    consumers_wake_.notify_all();
    if (held_ == 0) idle_.notify_all();
    return;
  }
  at(slot).consumed = std::move(consumed);
  free_slot(slot);
}

void BlockPipeline::Impl::read_into(Lock& lock, int slot) {
  lock.unlock();
  const auto start = Clock::now();
  const std::int64_t switches = policy_.adaptive() ? voluntary_switches() : 0;
  filler_->fill(slot, at(slot), shard_[static_cast<std::size_t>(at(slot).position)]);
  const bool slept = policy_.adaptive() && voluntary_switches() != switches;
  const double seconds = seconds_since(start);
  lock.lock();
  stats_.read_seconds += seconds;
  if (!at(slot).error) stats_.bytes += at(slot).bytes;
  if (policy_.saw_read(slept)) readers_wake_.notify_all();
  if (at(slot).error) fail(at(slot).position);
  if (failed_ != std::numeric_limits<std::int64_t>::max()) settled_.notify_all();
}

void BlockPipeline::Impl::fail(std::int64_t position) {
  failed_ = std::min(failed_, position);
  end_ = std::min(end_, position + 1);
  consumers_wake_.notify_all();
}

void BlockPipeline::Impl::stop_before(std::int64_t row) {
  const auto begins_behind = [this, row](std::int64_t id) { return grid_.range(id).first >= row; };
  const auto stop = std::find_if(shard_.begin(), shard_.end(), begins_behind) - shard_.begin();
  const Lock lock(mutex_);
  end_ = std::min<std::int64_t>(end_, stop);
  consumers_wake_.notify_all();
}

std::int64_t BlockPipeline::Impl::last_block() const {
  const Lock lock(mutex_);
  return next_out_ == 0 ? -1 : shard_[static_cast<std::size_t>(next_out_ - 1)];
}

PipelineStats BlockPipeline::Impl::stats() const {
  const Lock lock(mutex_);
  return stats_;
}

}  // namespace rowmill
