// The engine's parts over queues that run beside the caller and misbehave, on several ranks, over MPI and over a double
// of NCCL: the bits of a plain backend, or one clean error on all ranks.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "comm/nccl_reduce.hpp"
#include "comm/world.hpp"
#include "tests/comm/nccl_double.hpp"
#include "tests/engine/small_run.hpp"
#include "tests/support/faulty_backend.hpp"
#include "tests/support/files.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::BackendFaults;
using test::FaultyBackend;
using test::SmallRun;
using testing::NcclDouble;
using testing::NcclFaults;

constexpr std::int64_t rows = 2003, columns = 17, block_rows = 100;

class EngineFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 random(5);
    std::normal_distribution<float> normal(3, 2);
    values_.resize(rows * columns);
    for (float& value : values_) value = normal(random);
  }

  std::unique_ptr<test::MemorySource> source() const {
    return test::MemorySource::dense<float>(rows, columns, values_);
  }

  FaultyBackend& make_backend(const BackendFaults& faults) {
    return backend_.emplace(make_async_host_backend(), faults);
  }
  Communicator& make_nccl(const NcclFaults& faults = {}, milliseconds timeout = seconds(20)) {
    nccl_.emplace(ranks_, *backend_, faults);
    over_nccl_ = make_nccl_communicator(ranks_, *backend_, {nccl_->calls(), {}}, {.timeout = timeout});
    return *over_nccl_;
  }

  /// What one rank on the plain host backend makes of it.
  ResultSink plain(const std::string& job) const {
    const auto backend = make_host_backend();
    const auto alone = make_self_communicator();
    const auto from = source();
    return test::mill(
        {.backend = *backend, .ranks = *alone, .bulk = *alone, .source = *from, .job = job, .block_rows = block_rows});
  }

  void expect_plain_bits(const ResultSink& result, const std::string& job) const {
    if (ranks_.rank() != 0) return;
    const ResultSink truth = plain(job);
    ASSERT_FALSE(truth.datasets().empty());
    for (const auto& dataset : truth.datasets()) {
      const ResultDataset* const found = result.find(dataset.name);
      ASSERT_NE(found, nullptr) << dataset.name;
      EXPECT_TRUE(test::same_bits(found->values, dataset.values)) << job << " " << dataset.name;
    }
  }

  static std::uint64_t fresh() { return std::random_device{}(); }
  bool is_last() const { return ranks_.rank() == ranks_.size() - 1; }

  int argc_ = 0;
  char** argv_ = nullptr;
  World world_{argc_, argv_, seconds(20)};
  Communicator& ranks_ = world_.communicator();
  std::vector<float> values_;
  std::optional<FaultyBackend> backend_;
  std::optional<NcclDouble> nccl_;
  std::unique_ptr<Communicator> over_nccl_;
};

TEST_F(EngineFaults, QueuesThatFallBehindOneAnotherAtRandom_GiveThePlainBits) {
  for (const char* job : {"stats", "gram", "cov"}) {
    const std::uint64_t seed = fresh();
    SCOPED_TRACE("seed " + std::to_string(seed));
    FaultyBackend& backend = make_backend({.queue_delay = microseconds(300), .seed = seed});
    const auto from = source();
    SmallRun run{.backend = backend,
                 .ranks = ranks_,
                 .bulk = ranks_,
                 .source = *from,
                 .job = job,
                 .block_rows = block_rows,
                 .lanes = 3};
    expect_plain_bits(test::mill(run), job);
  }
}

TEST_F(EngineFaults, SlowCopiesIntoFewSlots_GiveThePlainBits) {
  FaultyBackend& backend = make_backend({.copy_delay = microseconds(700)});
  const auto from = source();
  from->set_delay(microseconds(100));
  const SmallRun run{
      .backend = backend, .ranks = ranks_, .bulk = ranks_, .source = *from, .block_rows = block_rows, .slots = 2};
  expect_plain_bits(test::mill(run), "cov");
}

TEST_F(EngineFaults, OverNccl_TheBitsAreThePlainOnesAndTheRoundsTwo) {
  for (const char* job : {"stats", "gram", "cov"}) {
    over_nccl_.reset();
    FaultyBackend& backend = make_backend({.queue_delay = microseconds(200), .seed = fresh()});
    Communicator& bulk = make_nccl();
    const std::int64_t trial = nccl_->groups();
    const auto from = source();
    const SmallRun run{
        .backend = backend, .ranks = ranks_, .bulk = bulk, .source = *from, .job = job, .block_rows = block_rows};
    expect_plain_bits(test::mill(run), job);
    EXPECT_EQ((nccl_->groups() - trial) % 2, 0);
    EXPECT_EQ(nccl_->groups() > trial, ranks_.size() > 1);
  }
}

class EngineMemory : public EngineFaults {
 protected:
  SmallRun stats(FaultyBackend& backend, int slots) {
    return {.backend = backend,
            .ranks = ranks_,
            .bulk = ranks_,
            .source = *source_,
            .job = "stats",
            .block_rows = block_rows,
            .slots = slots};
  }
  /// Of a run without faults.
  std::int64_t slot_bytes() const {
    return static_cast<std::int64_t>(
        BlockPipeline::slot_bytes({source_.get(), nullptr, nullptr}, BlockGrid({0, rows}, block_rows)));
  }
  std::int64_t bytes_of_lane() { return static_cast<std::int64_t>(test::lane_bytes(stats(make_backend({}), 1))); }

  std::unique_ptr<test::MemorySource> source_;
  static constexpr std::int64_t passes_ = 1;  // of stats on data like these

  void SetUp() override {
    EngineFaults::SetUp();
    source_ = source();
    ASSERT_LT(bytes_of_lane(), slot_bytes()) << "lanes would be refused, not slots";
  }
};

TEST_F(EngineMemory, ForFewerSlots_GivesThePlainBits) {
  FaultyBackend& backend = make_backend({.greatest_allocation = 2 * slot_bytes()});
  expect_plain_bits(test::mill(stats(backend, 5)), "stats");
  EXPECT_EQ(backend.refused(), 3 * passes_);
}

TEST_F(EngineMemory, ForNoSlotOnOneRank_EndsAllNamingIt) {
  const std::int64_t lane = bytes_of_lane();
  FaultyBackend& backend = make_backend({.greatest_allocation = is_last() ? lane : 0});
  const Agreement agreement = test::agree_on(ranks_, [&] { test::mill(stats(backend, 4)); });
  EXPECT_EQ(agreement.code, ExitCode::device);
  EXPECT_EQ(agreement.rank, ranks_.size() - 1);
  EXPECT_EQ(agreement.message.find("out of device memory") != std::string::npos, is_last()) << agreement.message;
}

TEST_F(EngineFaults, AMissingValueAmongSlowQueues_IsTheOneWithTheSmallestRow) {
  values_[1500 * columns + 3] = values_[1203 * columns + 5] = values_[1203 * columns + 6] =
      std::numeric_limits<float>::quiet_NaN();
  FaultyBackend& backend = make_backend({.queue_delay = microseconds(500), .seed = fresh()});
  const auto from = source();
  const SmallRun run{
      .backend = backend, .ranks = ranks_, .bulk = ranks_, .source = *from, .block_rows = block_rows, .lanes = 3};
  const Agreement agreement = test::agree_on(ranks_, [&] { test::mill(run); });
  EXPECT_EQ(agreement.code, ExitCode::input);
  if (agreement.rank == ranks_.rank()) {
    EXPECT_NE(agreement.message.find("row 1203, column 5"), std::string::npos) << agreement.message;
  }
}

TEST_F(EngineFaults, ARankThatFails_EndsAllWithItsErrorWhateverTheOthersWaitFor) {
  for (const bool nccl : {false, true}) {
    over_nccl_.reset();
    FaultyBackend& backend = make_backend({.queue_delay = microseconds(200), .seed = fresh()});
    Communicator& bulk = nccl ? make_nccl() : ranks_;
    ASSERT_TRUE(ranks_.agree(std::nullopt, {}).ok);
    const auto from = source();
    if (is_last()) from->throw_at_row(rows - 1);
    const SmallRun run{.backend = backend, .ranks = ranks_, .bulk = bulk, .source = *from, .block_rows = block_rows};
    const Agreement agreement = test::agree_on(ranks_, [&] { test::mill(run); });
    EXPECT_EQ(agreement.code, ExitCode::input);
    EXPECT_EQ(agreement.rank, ranks_.size() - 1);
    EXPECT_EQ(agreement.message, is_last() ? "memory: row 2002 cannot be read" : "");
  }
}

TEST_F(EngineFaults, ASumThatNeverEnds_EndsAllAtTheTimeout) {
  if (ranks_.size() == 1) GTEST_SKIP() << "one rank has nothing to combine";
  FaultyBackend& backend = make_backend({.queue_delay = microseconds(200), .seed = fresh()});
  NcclFaults faults;
  // The trial is one, the first round of cov three or more: this one is among the digits.
  if (is_last()) faults.endless_operation = 4;
  Communicator& bulk = make_nccl(faults, milliseconds(1500));
  ASSERT_TRUE(ranks_.agree(std::nullopt, {}).ok);
  const auto from = source();
  const SmallRun run{.backend = backend, .ranks = ranks_, .bulk = bulk, .source = *from, .block_rows = block_rows};
  const Agreement agreement = test::agree_on(ranks_, [&] { test::mill(run); });
  EXPECT_EQ(agreement.code, ExitCode::device);
  if (agreement.rank == ranks_.rank()) {
    EXPECT_NE(agreement.message.find("did not end within 1.5 s"), std::string::npos) << agreement.message;
  }
  EXPECT_EQ(nccl_->aborted(), 1);
}

}  // namespace
}  // namespace rowmill
