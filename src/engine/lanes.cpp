#include "engine/lanes.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "engine/combine.hpp"

namespace rowmill {

struct Lanes::Lane {
  Queue queue;
  DeviceBuffer memory;
  PartialView view;

  // The report of the block before: read one block late, so that the queue always has work.
  std::int64_t* seen = nullptr;  ///< staging memory
  std::optional<Event> reported;
};

PartialLayout Lanes::extended(PartialLayout layout, std::int64_t row_values) {
  if (row_values > 0) layout.add_scratch("row_values", row_values);
  layout.add("first_missing", ElementKind::i64, Combine::min, 1);
  layout.add("inexact", ElementKind::i64, Combine::max, 1);
  return layout;
}

Lanes::Lanes(PartialLayout layout, Backend& backend, Ops& ops, Options options)
    : layout_(std::move(layout)), backend_(backend), ops_(ops), options_(std::move(options)) {
  for (int i = 0; i < options_.count; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->queue = backend_.make_queue();
    lane->memory = DeviceBuffer(backend_, layout_.total_bytes(), lane->queue);
    lane->view = PartialView(layout_, lane->memory.data());
    lane->seen = static_cast<std::int64_t*>(backend_.allocate_staging(sizeof(std::int64_t)));
    lanes_.push_back(std::move(lane));
  }
}

Lanes::~Lanes() {
  for (auto& lane : lanes_) backend_.release_staging(lane->seen, sizeof(std::int64_t));
}

void Lanes::reset(Lane& lane) {
  lane.reported.reset();
  if (backend_.unified()) {  // a second partial a lane would be more than the memory plan counts
    backend_.wait_host(backend_.record(lane.queue));
    set_neutral(layout_, lane.memory.data());
    return;
  }
  HostPartial nothing(layout_);
  const auto bytes = nothing.combined();
  backend_.copy(lane.memory.data(), bytes.data(), bytes.size(), lane.queue);
  backend_.wait_host(backend_.record(lane.queue));
}

void Lanes::prepare(const Job& job, BlockShape shape) {
  if (job.block_product(lanes_.front()->view) == nullptr) shape.product.reset();
  for (auto& lane : lanes_) ops_.prepare(shape, lane->queue);
}

void Lanes::pilot(Job& job, const Block& block, State& state) {
  Lane& lane = *lanes_.front();
  job.pilot(block, lane.view, state, ops_, lane.queue);
  backend_.wait_host(backend_.record(lane.queue));
}

Queue Lanes::first_queue() const {
  return lanes_.front()->queue;
}

/// The threads of one pass, and the first error among them.
class Lanes::Crew {
 public:
  Crew(Lanes& lanes, const Job& job, BlockPipeline& pipeline, std::optional<Lease> first)
      : lanes_(lanes), job_(job), pipeline_(pipeline), first_(std::move(first)) {
    if (const auto output = job.row_output()) width_ = output->width;
    active_ = lanes.count();
    for (auto& lane : lanes.lanes_) threads_.emplace_back([this, &lane = *lane] { run(lane); });
  }

  void wait(const std::function<void()>& watch, const TakeRows& take_rows) {
    std::unique_lock lock(mutex_);
    while (active_ > 0 || !rows_.empty()) {
      if (rows_.empty()) finished_.wait_for(lock, std::chrono::milliseconds(2));
      std::optional<RowsOfBlock> rows;
      if (!rows_.empty()) {
        rows = std::move(rows_.front());
        rows_.pop_front();
        room_.notify_one();
      }
      lock.unlock();
      if (rows) take_rows(rows->range, rows->values);
      watch();
      lock.lock();
    }
  }

  /// Ends the threads however the caller leaves.
  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    room_.notify_all();
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run(Lane& lane) {
    try {
      lanes_.reset(lane);
      job_.prepare(lane.view, lanes_.ops_, lane.queue);
      std::optional<Lease> lease;
      if (&lane == lanes_.lanes_.front().get()) lease = std::exchange(first_, std::nullopt);
      while (lease || (lease = pipeline_.next(lane.queue))) {
        const Block& block = lease->block();
        compute(block, lane);
        if (width_ > 0) hand_over_rows(block, lane);
        const std::int64_t columns = column_count(block.x);
        lease.reset();
        if (lanes_.options_.refuse_missing) {
          check(lane, columns);
          report(lane);
        }
        last_columns_ = columns;
      }
      lanes_.backend_.wait_host(lanes_.backend_.record(lane.queue));
      if (lane.reported) check(lane, last_columns_);
    } catch (const Error& error) {
      keep(std::current_exception(), error.row());
    } catch (...) {
      keep(std::current_exception(), std::nullopt);
    }
    const std::lock_guard lock(mutex_);
    --active_;
    finished_.notify_one();
  }

  void compute(const Block& block, Lane& lane) {
    const NamedRange range(lanes_.backend_, "compute");
    job_.accumulate(block, lane.view, lanes_.ops_, lane.queue);
    look_over(block, lane);
  }

  void look_over(const Block& block, Lane& lane) {
    const bool refuse_missing = lanes_.options_.refuse_missing, look_for_inexact = lanes_.options_.look_for_inexact;
    const double* const product = job_.block_product(lane.view);
    if (product != nullptr && refuse_missing && !look_for_inexact) {
      lanes_.ops_.inspect_product(block, product, lane.view.i64("first_missing"), lane.queue);
    } else if (refuse_missing || look_for_inexact) {
      lanes_.ops_.inspect(block, lane.view.i64("first_missing"), lane.view.i64("inexact"), lane.queue);
    }
  }

  void hand_over_rows(const Block& block, Lane& lane) {
    Backend& backend = lanes_.backend_;
    double* const from = lane.view.f64("row_values");
    job_.write_rows(block, lane.view, from, lanes_.ops_, lane.queue);
    RowsOfBlock rows{block.range, std::vector<double>(static_cast<std::size_t>(block.range.count * width_))};
    backend.copy(rows.values.data(), from, rows.values.size() * sizeof(double), lane.queue);
    backend.wait_host(backend.record(lane.queue));
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return closed_ || static_cast<int>(rows_.size()) < 2 * lanes_.count(); });
    if (closed_) return;
    rows_.push_back(std::move(rows));
    finished_.notify_one();
  }

  void report(Lane& lane) {
    Backend& backend = lanes_.backend_;
    backend.copy(lane.seen, lane.view.i64("first_missing"), sizeof(std::int64_t), lane.queue);
    lane.reported = backend.record(lane.queue);
  }

  void check(Lane& lane, std::int64_t columns) {
    if (!lane.reported) return;
    lanes_.backend_.wait_host(*lane.reported);
    lane.reported.reset();
    if (*lane.seen == nothing_missing) return;
    const std::int64_t row = *lane.seen / columns;
    std::int64_t column = *lane.seen % columns;
    if (!lanes_.options_.columns.empty()) column = lanes_.options_.columns.at(static_cast<std::size_t>(column));
    const auto& place = lanes_.options_.place;
    const RowPlace at = place ? place(row) : RowPlace{lanes_.options_.input, row};
    throw Error(ExitCode::input,
                at.name + ": the value at row " + std::to_string(at.row) +
                    (at.row == row ? "" : " (row " + std::to_string(row) + " of all files)") + ", column " +
                    std::to_string(column) + " is missing (" + lanes_.options_.missing_is +
                    "): " + lanes_.options_.missing_cure,
                row);
  }

  /// Errors without a row come first, then the smallest row.
  void keep(std::exception_ptr error, std::optional<std::int64_t> row) {
    const std::lock_guard lock(mutex_);
    if (!error_ || (row_ && (!row || *row < *row_))) {
      error_ = error;
      row_ = row;
    }
    pipeline_.stop_before(row.value_or(0));
  }

  struct RowsOfBlock {
    RowRange range;
    std::vector<double> values;
  };

  Lanes& lanes_;
  const Job& job_;
  BlockPipeline& pipeline_;
  std::int64_t width_ = 0;      ///< of the job's row output
  std::optional<Lease> first_;  ///< touched by the first lane only
  std::mutex mutex_;
  std::condition_variable finished_, room_;
  std::deque<RowsOfBlock> rows_;  ///< waiting to be taken
  bool closed_ = false;           ///< nobody takes rows any more
  int active_ = 0;
  std::exception_ptr error_;
  std::optional<std::int64_t> row_;
  std::atomic<std::int64_t> last_columns_{1};
  std::vector<std::thread> threads_;
};

void Lanes::mill(const Job& job, BlockPipeline& pipeline, std::optional<Lease> first,
                 const std::function<void()>& watch, const TakeRows& take_rows) {
  Crew crew(*this, job, pipeline, std::move(first));
  try {
    crew.wait(watch, take_rows);
  } catch (...) {
    pipeline.stop_before(0);
    throw;
  }
  crew.rethrow();
}

PartialView Lanes::merge() {
  Lane& first = *lanes_.front();
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    backend_.wait(first.queue, backend_.record(lanes_[i]->queue));
    merge_partials(first.view, lanes_[i]->view, ops_, first.queue);
  }
  return first.view;
}

HostPartial Lanes::fetch() {
  Lane& first = *lanes_.front();
  if (backend_.unified()) {
    backend_.wait_host(backend_.record(first.queue));
    return HostPartial::over(layout_, first.memory.data());
  }
  HostPartial partial(layout_);
  const auto bytes = partial.combined();
  backend_.copy(bytes.data(), first.memory.data(), bytes.size(), first.queue);
  backend_.wait_host(backend_.record(first.queue));
  return partial;
}

}  // namespace rowmill
