// Errors, early ends and shortage of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>

#include "core/error.hpp"
#include "tests/pipeline/pipeline_data.hpp"

namespace rowmill {
namespace {

using namespace test;

constexpr std::int64_t kRows = 35, kBlockRows = 5, kBlocks = 7;
const BlockGrid kGrid({0, kRows}, kBlockRows);
const Shard kShard = contiguous_shard(kGrid, 0, 1);

struct Outcome {
  std::vector<std::int64_t> ids;          ///< ascending
  std::vector<std::int64_t> error_rows;   ///< of errors thrown; -1: an error without one
  std::vector<std::exception_ptr> other;  ///< errors that are not ours
};

Outcome run_out(BlockPipeline& pipeline, Backend& backend, int consumers) {
  Outcome outcome;
  std::mutex mutex;
  const auto consume = [&] {
    const Queue queue = backend.make_queue();
    while (true) {
      try {
        const auto lease = pipeline.next(queue);
        if (!lease) return;
        const std::scoped_lock lock(mutex);
        outcome.ids.push_back(lease->block().id);
      } catch (const Error& error) {
        const std::scoped_lock lock(mutex);
        outcome.error_rows.push_back(error.code() == ExitCode::input ? error.row().value_or(-1) : -1);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < consumers; ++i) threads.emplace_back(consume);
  for (std::thread& thread : threads) thread.join();
  std::sort(outcome.ids.begin(), outcome.ids.end());
  return outcome;
}

std::vector<std::int64_t> blocks_before(std::int64_t id) {
  return {kShard.begin(), kShard.begin() + id};
}

class Failures : public testing::TestWithParam<BackendKind> {
 protected:
  /// Each way in which threads may share the reading.
  template <typename Body>
  void for_each_crew(Body body) {
    for (const int consumers : {1, 3}) {
      for (const bool consumers_read : {false, true}) {
        for (const int slots : {1, 2, 5}) {
          SCOPED_TRACE(testing::Message()
                       << consumers << " consumers, consumers_read " << consumers_read << ", " << slots << " slots");
          const auto backend = GetParam().make();
          body(*backend, consumers,
               PipelineOptions{.slots = slots, .io_threads = 2, .consumers_read = consumers_read, .cores = 2});
        }
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, Failures, testing::ValuesIn(kBackends),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(Failures, ErrorAtAnyBlock_IsThrownOnceAfterAllBlocksBeforeIt) {
  for (std::int64_t row = 2; row < kRows; row += kBlockRows) {
    SCOPED_TRACE(row);
    for_each_crew([&](Backend& backend, int consumers, PipelineOptions options) {
      PipelineData data(kRows, 3, 1);
      data.x_source->throw_at_row(row);
      BlockPipeline pipeline(data.sources(), kGrid, kShard, backend, options);
      const Outcome outcome = run_out(pipeline, backend, consumers);
      EXPECT_EQ(outcome.error_rows, std::vector<std::int64_t>{row});
      const std::int64_t failed = row / kBlockRows;
      ASSERT_GE(std::ssize(outcome.ids), failed);
      EXPECT_TRUE(std::equal(outcome.ids.begin(), outcome.ids.begin() + failed, kShard.begin()));
      EXPECT_FALSE(std::binary_search(outcome.ids.begin(), outcome.ids.end(), failed));
      if (consumers == 1) {
        EXPECT_EQ(outcome.ids, blocks_before(failed));
      }
      EXPECT_FALSE(pipeline.next(backend.make_queue()));
    });
  }
}

TEST_P(Failures, OfSeveralErrors_TheFirstInTheShardsOrderIsThrown) {
  for (const std::int64_t x_row : {7, 12, 27}) {
    SCOPED_TRACE(x_row);
    for_each_crew([&](Backend& backend, int consumers, PipelineOptions options) {
      PipelineData data(kRows, 3, 1);
      data.x_source->throw_at_row(x_row);
      // Blocks are read side by side, and the error in x comes last though its block may come first.
      data.x_source->set_delay(std::chrono::microseconds(200), x_row, std::chrono::microseconds(500));
      data.y_source->throw_at_row(17);
      BlockPipeline pipeline(data.sources(), kGrid, kShard, backend, options);
      const Outcome outcome = run_out(pipeline, backend, consumers);
      EXPECT_EQ(outcome.error_rows, std::vector<std::int64_t>{std::min<std::int64_t>(x_row, 17)});
    });
  }
}

TEST_P(Failures, StopBeforeAnyRow_GivesOutTheBlocksThatBeginBeforeIt) {
  for (std::int64_t row = 0; row <= kRows; row += 3) {
    SCOPED_TRACE(row);
    for_each_crew([&](Backend& backend, int consumers, PipelineOptions options) {
      PipelineData data(kRows, 3, 1);
      BlockPipeline pipeline(data.sources(), kGrid, kShard, backend, options);
      pipeline.stop_before(row);
      pipeline.stop_before(row + 10);  // the smaller one wins
      const Outcome outcome = run_out(pipeline, backend, consumers);
      EXPECT_EQ(outcome.ids, blocks_before((row + kBlockRows - 1) / kBlockRows));
      EXPECT_TRUE(outcome.error_rows.empty());
    });
  }
}

TEST_P(Failures, StopWhileConsumersRun_LeavesNoGap) {
  const Seed seed;
  std::mt19937_64 random(seed.value);
  for_each_crew([&](Backend& backend, int consumers, PipelineOptions options) {
    PipelineData data(600, 3, seed.value);
    data.x_source->set_delay(std::chrono::microseconds(20));
    const BlockGrid grid({0, 600}, 2);
    BlockPipeline pipeline(data.sources(), grid, contiguous_shard(grid, 0, 1), backend, options);
    std::thread stopper([&, us = static_cast<std::int64_t>(random() % 3000)] {
      sleep_us(us);
      pipeline.stop_before(0);
    });
    const Outcome outcome = run_out(pipeline, backend, consumers);
    stopper.join();
    for (std::size_t i = 0; i < outcome.ids.size(); ++i) ASSERT_EQ(outcome.ids[i], static_cast<std::int64_t>(i));
    EXPECT_EQ(pipeline.last_block(), std::ssize(outcome.ids) - 1);
  });
}

TEST_P(Failures, StopBeforeTheRowOfAnError_HidesIt) {
  for_each_crew([&](Backend& backend, int consumers, PipelineOptions options) {
    PipelineData data(kRows, 3, 1);
    data.x_source->throw_at_row(22);
    BlockPipeline pipeline(data.sources(), kGrid, kShard, backend, options);
    pipeline.stop_before(20);
    const Outcome outcome = run_out(pipeline, backend, consumers);
    EXPECT_EQ(outcome.ids, blocks_before(4));
    EXPECT_TRUE(outcome.error_rows.empty());
  });
}

TEST_P(Failures, Stop_WakesAConsumerThatWaitsForARead) {
  PipelineData data(kRows, 3, 1);
  GatedSource gated(*data.x_source);
  const auto backend = GetParam().make();
  BlockPipeline pipeline({&gated, nullptr, nullptr}, kGrid, kShard, *backend, {.consumers_read = false});
  auto got = std::async(std::launch::async, [&] { return pipeline.next(backend->make_queue()).has_value(); });
  EXPECT_TRUE(gated.wait_for_reads(1));
  pipeline.stop_before(0);
  EXPECT_FALSE(got.get());  // the read goes on all the while
  gated.open();
}

TEST_P(Failures, DestructionAtAnyTime_WaitsForReadsThatHaveBegun) {
  for (std::int64_t taken = 0; taken <= kBlocks; ++taken) {
    PipelineData data(kRows, 3, 1);
    data.x_source->set_delay(std::chrono::microseconds(300));
    const auto backend = GetParam().make();
    const Queue queue = backend->make_queue();
    {
      BlockPipeline pipeline(data.sources(), kGrid, kShard, *backend, {.slots = 3, .io_threads = 3});
      for (std::int64_t i = 0; i < taken; ++i) ASSERT_TRUE(pipeline.next(queue));
    }
    EXPECT_LE(data.x_source->reads(), taken + 3);
    EXPECT_EQ(backend->staging_memory().current, 0);
  }
}

TEST_P(Failures, DestructionWhileAnotherThreadHoldsALease_WaitsForIt) {
  PipelineData data(kRows, 3, 1);
  const auto backend = GetParam().make();
  const Queue queue = backend->make_queue();
  auto pipeline = std::make_unique<BlockPipeline>(data.sources(), kGrid, kShard, *backend, PipelineOptions{});
  std::promise<void> leased;
  std::atomic<bool> handed_back{false};
  std::thread holder([&] {
    auto lease = pipeline->next(queue);
    leased.set_value();
    sleep_us(20000);
    handed_back = true;
  });
  leased.get_future().wait();
  pipeline.reset();
  EXPECT_TRUE(handed_back);
  holder.join();
}

TEST(AsyncFailures, DestructionWhileAQueueStillUsesASlot_WaitsForIt) {
  PipelineData data(kRows, 3, 1);
  const auto backend = make_async_host_backend();
  const Queue queue = backend->make_queue();
  std::promise<void> gate;
  std::jthread opener;
  std::string wrong = "not run";
  {
    BlockPipeline pipeline(data.sources(), kGrid, kShard, *backend, {});
    const auto lease = pipeline.next(queue);
    backend->submit(queue, [&, block = lease->block(), opened = gate.get_future().share()] {
      opened.wait();
      wrong = data.wrong_with(block);
    });
    opener = std::jthread([&gate] {
      sleep_us(20000);
      gate.set_value();
    });
  }
  EXPECT_EQ(wrong, "");
}

TEST(AsyncFailures, FailureOnAConsumersQueue_IsThrownThereAfterThePipelineIsGone) {
  PipelineData data(kRows, 3, 1);
  const auto backend = make_async_host_backend();
  const Queue queue = backend->make_queue();
  {
    BlockPipeline pipeline(data.sources(), kGrid, {5, 6}, *backend, {.slots = 2});
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(pipeline.next(queue));
      if (i == 1) backend->submit(queue, [] { throw std::runtime_error("arithmetic"); });
    }
    EXPECT_FALSE(pipeline.next(queue));
  }
  EXPECT_THROW(backend->wait_host(backend->record(queue)), std::runtime_error);
}

TEST(AsyncFailures, FailureOnAConsumersQueue_ReachesNextOrWaitHost) {
  PipelineData data(kRows, 3, 1);
  const auto backend = make_async_host_backend();
  const Queue queue = backend->make_queue();
  BlockPipeline pipeline(data.sources(), kGrid, kShard, *backend, {.slots = 1});
  const auto mill = [&] {
    while (auto lease = pipeline.next(queue)) {
      if (lease->block().id == 2) backend->submit(queue, [] { throw std::runtime_error("arithmetic"); });
    }
    backend->wait_host(backend->record(queue));
  };
  EXPECT_THROW(mill(), std::runtime_error);
}

TEST(AsyncFailures, DeviceMemoryForFewerSlots_IsEnough) {
  const Seed seed;
  PipelineData data(400, 30, seed.value);
  const BlockGrid grid({0, 400}, 20);
  const Shard shard = contiguous_shard(grid, 0, 1);
  const auto slot = static_cast<std::int64_t>(BlockPipeline::slot_bytes(data.sources(), grid));
  for (const int enough_for : {1, 2, 4}) {
    SCOPED_TRACE(enough_for);
    const auto backend = make_async_host_backend({.device_bytes = enough_for * slot + slot / 2});
    BlockPipeline pipeline(data.sources(), grid, shard, *backend, {.slots = 5});
    for (const MemoryUse use : {backend->device_memory(), backend->staging_memory()}) {
      EXPECT_GE(use.current, enough_for * slot);
      EXPECT_LT(use.current, (enough_for + 1) * slot);
    }
    EXPECT_EQ(run_out(pipeline, *backend, 2).ids, shard);
  }
}

TEST(AsyncFailures, FailedAllocation_TakesOneSlotLess) {
  PipelineData data(400, 30, 1);
  const BlockGrid grid({0, 400}, 20);
  const auto slot = static_cast<std::int64_t>(BlockPipeline::slot_bytes(data.sources(), grid));
  const auto backend = make_async_host_backend({.failing_allocation = 1});
  const Shard shard = contiguous_shard(grid, 0, 1);
  BlockPipeline pipeline(data.sources(), grid, shard, *backend, {.slots = 5});
  EXPECT_GE(backend->device_memory().high_water, 4 * slot);
  EXPECT_LT(backend->device_memory().high_water, 5 * slot);
  EXPECT_EQ(run_out(pipeline, *backend, 1).ids, shard);
}

TEST(AsyncFailures, NoDeviceMemoryForOneSlot_IsADeviceError) {
  PipelineData data(kRows, 3, 1);
  const auto slot = static_cast<std::int64_t>(BlockPipeline::slot_bytes(data.sources(), kGrid));
  const auto backend = make_async_host_backend({.device_bytes = slot - 1});
  try {
    BlockPipeline pipeline(data.sources(), kGrid, kShard, *backend, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::device);
  }
  EXPECT_EQ(data.x_source->reads(), 0);
}

}  // namespace
}  // namespace rowmill
