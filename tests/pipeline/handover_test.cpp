// Every block of a shard reaches a consumer once, in order, with the right rows, whatever the threads do.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "tests/pipeline/pipeline_data.hpp"

namespace rowmill {
namespace {

using namespace test;

struct Milled {
  std::vector<std::vector<std::int64_t>> ids;  ///< by consumer, in the order in which they were given out
  std::vector<std::string> wrong;              ///< what consumers found wrong
};

/// Consumers put a check of each block on their queues and hand the lease back at once. `work_us`: the check is late by
/// up to so much, so that a slot that is filled too early is found out.
Milled mill(BlockPipeline& pipeline, const PipelineData& data, Backend& backend, int consumers, std::uint64_t seed,
            int work_us) {
  Milled milled;
  milled.ids.resize(static_cast<std::size_t>(consumers));
  std::mutex mutex;
  const auto consume = [&](std::size_t consumer) {
    const Queue queue = backend.make_queue();
    std::mt19937_64 random(seed + consumer);
    while (auto lease = pipeline.next(queue)) {
      milled.ids[consumer].push_back(lease->block().id);
      const auto late = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(work_us + 1));
      backend.submit(queue, [&, block = lease->block(), late] {
        if (late > 0) sleep_us(late);
        const std::string wrong = data.wrong_with(block);
        const std::scoped_lock lock(mutex);
        if (!wrong.empty()) milled.wrong.push_back(wrong);
      });
    }
    backend.wait_host(backend.record(queue));
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < milled.ids.size(); ++i) threads.emplace_back(consume, i);
  for (std::thread& thread : threads) thread.join();
  return milled;
}

void expect_whole_shard(const Milled& milled, const Shard& shard) {
  EXPECT_EQ(milled.wrong, std::vector<std::string>{});
  std::vector<std::int64_t> all;
  for (const auto& ids : milled.ids) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, shard);
}

class Handover : public testing::TestWithParam<BackendKind> {};
INSTANTIATE_TEST_SUITE_P(Backends, Handover, testing::ValuesIn(kBackends),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(Handover, OfAnyNumberOfThreadsAndSlots_GivesEachBlockOnceWithItsRows) {
  const Seed seed;
  std::mt19937_64 random(seed.value);
  for (int slots = 1; slots <= 8; ++slots) {
    for (int consumers = 1; consumers <= 4; ++consumers) {
      const bool sparse = random() % 2 == 0;
      const auto rows = static_cast<std::int64_t>(50 + random() % 200), columns = 1 + std::int64_t(random() % 9);
      PipelineData data(rows, columns, random(), sparse);
      data.x_source->set_delay(std::chrono::microseconds(random() % 2 * 50));
      const auto first = static_cast<std::int64_t>(random() % 20);
      const BlockGrid grid({first, rows - first - 3}, 1 + static_cast<std::int64_t>(random() % 12));
      const PipelineOptions options{.slots = slots,
                                    .io_threads = 1 + static_cast<int>(random() % 4),
                                    .consumers_read = random() % 2 == 0,
                                    .cores = static_cast<int>(random() % 5)};
      SCOPED_TRACE(testing::Message() << slots << " slots, " << consumers << " consumers, " << options.io_threads
                                      << " readers, consumers_read " << options.consumers_read << ", cores "
                                      << options.cores << (sparse ? ", sparse" : ""));
      const auto backend = GetParam().make();
      const Shard shard = contiguous_shard(grid, 0, 1);
      BlockPipeline pipeline(data.sources(), grid, shard, *backend, options);
      expect_whole_shard(mill(pipeline, data, *backend, consumers, random(), 60), shard);
      EXPECT_EQ(pipeline.last_block(), shard.back());
      EXPECT_EQ(pipeline.stats().blocks, static_cast<std::int64_t>(shard.size()));
      EXPECT_EQ(data.x_source->reads(), static_cast<std::int64_t>(shard.size()));  // nothing is read twice
    }
  }
}

TEST_P(Handover, ToOneConsumer_IsInTheShardsOrder) {
  const Seed seed;
  PipelineData data(97, 3, seed.value);
  const BlockGrid grid({0, 97}, 4);
  Shard shard;
  for (std::int64_t id = 1; id < grid.end_id(); id += 3) shard.push_back(id);  // a shard with gaps
  const auto backend = GetParam().make();
  BlockPipeline pipeline(data.sources(), grid, shard, *backend, {.slots = 3, .io_threads = 3});
  const Milled milled = mill(pipeline, data, *backend, 1, seed.value, 0);
  EXPECT_EQ(milled.ids[0], shard);
  EXPECT_EQ(milled.wrong, std::vector<std::string>{});
}

TEST_P(Handover, OfAnEmptyShard_GivesNothingAndTakesNoMemory) {
  PipelineData data(10, 2, 1);
  const auto backend = GetParam().make();
  BlockPipeline pipeline(data.sources(), BlockGrid({0, 10}, 4), {}, *backend, {});
  EXPECT_FALSE(pipeline.next(backend->make_queue()));
  EXPECT_EQ(pipeline.last_block(), -1);
  EXPECT_EQ(pipeline.stats().blocks, 0);
  EXPECT_EQ(backend->staging_memory().high_water + backend->device_memory().high_water, 0);
}

TEST_P(Handover, OfManyBlocks_TakesMemoryOnlyAtTheBeginning) {
  const Seed seed;
  PipelineData data(4000, 6, seed.value);
  const BlockGrid grid({0, 4000}, 7);
  const auto backend = GetParam().make();
  {
    const Shard shard = contiguous_shard(grid, 0, 1);
    BlockPipeline pipeline(data.sources(), grid, shard, *backend, {.slots = 4});
    const auto staging = backend->staging_memory().current, device = backend->device_memory().current;
    const auto slots = static_cast<std::int64_t>(4 * BlockPipeline::slot_bytes(data.sources(), grid));
    EXPECT_GE(staging, slots);
    EXPECT_GE(device, backend->unified() ? 0 : slots);
    expect_whole_shard(mill(pipeline, data, *backend, 2, seed.value, 0), shard);
    EXPECT_EQ(backend->staging_memory().high_water, staging);
    EXPECT_EQ(backend->device_memory().high_water, device);
  }
  const Queue queue = backend->make_queue();
  backend->wait_host(backend->record(queue));
  EXPECT_EQ(backend->staging_memory().current, 0);
}

TEST_P(Handover, OfXAlone_LeavesTheOthersEmpty) {
  PipelineData data(20, 2, 1);
  const auto backend = GetParam().make();
  const BlockGrid grid({0, 20}, 20);
  BlockPipeline pipeline({data.x_source.get(), nullptr, nullptr}, grid, {0}, *backend, {});
  const auto lease = pipeline.next(backend->make_queue());
  ASSERT_TRUE(lease);
  EXPECT_FALSE(lease->block().y);
  EXPECT_FALSE(lease->block().weights);
  EXPECT_TRUE(lease->block().missing);
}

TEST_P(Handover, WhileAConsumerWorks_ReadsTheNextBlocks) {
  PipelineData data(40, 2, 1);
  GatedSource gated(*data.x_source);
  gated.open();
  const BlockGrid grid({0, 40}, 4);
  const auto backend = GetParam().make();
  BlockPipeline pipeline({&gated, nullptr, nullptr}, grid, contiguous_shard(grid, 0, 1), *backend,
                         {.slots = 4, .io_threads = 1, .cores = 1});
  const Queue queue = backend->make_queue();
  auto lease = pipeline.next(queue);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(gated.wait_for_reads(4)) << "nobody reads ahead";
}

TEST_P(Handover, AfterAReadThatSlept_ReadsAheadThoughConsumersUseAllCores) {
  PipelineData data(400, 2, 1);
  GatedSource gated(*data.x_source);
  gated.open_up_to(200);
  const BlockGrid grid({0, 400}, 4);
  const auto backend = GetParam().make();
  BlockPipeline pipeline({&gated, nullptr, nullptr}, grid, contiguous_shard(grid, 0, 1), *backend,
                         {.slots = 4, .io_threads = 1, .cores = 1});
  const Queue queue = backend->make_queue();
  std::thread opener([&] {
    EXPECT_TRUE(gated.wait_for_reads(51));
    sleep_us(5000);  // so that the read does sleep
    gated.open();
  });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(pipeline.next(queue));
  const auto lease = pipeline.next(queue);
  opener.join();
  ASSERT_TRUE(lease);
  EXPECT_TRUE(gated.wait_for_reads(54)) << "nobody reads ahead";
}

TEST_P(Handover, ToTwoLeasesOfOneThread_KeepsBothUntilTheyAreHandedBack) {
  const Seed seed;
  PipelineData data(40, 2, seed.value);
  const BlockGrid grid({0, 40}, 4);
  const auto backend = GetParam().make();
  BlockPipeline pipeline(data.sources(), grid, contiguous_shard(grid, 0, 1), *backend, {.slots = 3});
  const Queue queue = backend->make_queue();
  auto first = pipeline.next(queue), second = pipeline.next(queue);
  ASSERT_TRUE(first && second);
  for (int i = 2; i < 10; ++i) ASSERT_TRUE(pipeline.next(queue)) << i;
  backend->wait_host(backend->record(queue));
  EXPECT_EQ(data.wrong_with(first->block()), "");
  EXPECT_EQ(data.wrong_with(second->block()), "");
  *first = std::move(*second);  // hands the first one back
  EXPECT_EQ(first->block().id, 1);
}

TEST(BlockPipeline, SlotBytes_AreTheLargestBlockOfEachSourceAligned) {
  PipelineData data(25, 5, 1);
  // 10 rows: x 200 -> 256 and its mask 50 -> 64, y 160 -> 192, weights 10 -> 64
  EXPECT_EQ(BlockPipeline::slot_bytes(data.sources(), BlockGrid({0, 25}, 10)), 256u + 64u + 192u + 64u);
}

TEST(BlockPipeline, Stats_CountBlocksAndTheBytesOfAllSources) {
  PipelineData data(20, 5, 1);
  const auto backend = make_host_backend();
  const BlockGrid grid({0, 20}, 10);
  BlockPipeline pipeline(data.sources(), grid, {0, 1}, *backend, {});
  const Queue queue = backend->make_queue();
  EXPECT_EQ(pipeline.last_block(), -1);
  ASSERT_TRUE(pipeline.next(queue));
  EXPECT_EQ(pipeline.last_block(), 0);
  ASSERT_TRUE(pipeline.next(queue));
  ASSERT_FALSE(pipeline.next(queue));
  EXPECT_EQ(pipeline.last_block(), 1);
  EXPECT_EQ(pipeline.stats().blocks, 2);
  EXPECT_EQ(pipeline.stats().bytes, 2 * (256 + 64 + 192 + 64));
  EXPECT_GT(pipeline.stats().read_seconds, 0);
}

TEST(BlockPipeline, OfAShuffledShard_GivesItsBlocksInThatOrder) {
  PipelineData data(40, 2, 1);
  const BlockGrid grid({0, 40}, 4);
  for (const bool unified : {true, false}) {
    const auto backend = unified ? make_host_backend() : make_async_host_backend();
    const Queue queue = backend->make_queue();
    const Shard shard = {7, 2, 9, 0, 5, 3};
    BlockPipeline pipeline(data.sources(), grid, shard, *backend, {.slots = 3, .io_threads = 2});
    Shard given;
    while (std::optional<Lease> lease = pipeline.next(queue)) {
      given.push_back(lease->block().id);
      EXPECT_EQ(lease->block().range, grid.range(given.back()));
      if (given.size() == 4) pipeline.stop_before(20);  // block 5 begins there
    }
    EXPECT_EQ(given, (Shard{7, 2, 9, 0}));
  }
}

TEST(BlockPipeline, OfAShardWithABlockOutsideTheGrid_IsRefused) {
  PipelineData data(20, 2, 1);
  const auto backend = make_host_backend();
  const BlockGrid grid({4, 16}, 4);  // blocks 1 to 4
  for (const Shard& shard : {Shard{0, 1}, Shard{4, 5}, Shard{2, -1, 3}}) {
    EXPECT_THROW(BlockPipeline(data.sources(), grid, shard, *backend, {}), std::invalid_argument);
  }
  EXPECT_THROW(BlockPipeline(data.sources(), grid, {1}, *backend, {.slots = 0}), std::invalid_argument);
  EXPECT_THROW(BlockPipeline(data.sources(), grid, {1}, *backend, {.io_threads = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace rowmill
