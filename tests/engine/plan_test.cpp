#include "engine/plan.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/units.hpp"
#include "engine/machine.hpp"
#include "tests/support/forwarding_ops.hpp"

namespace rowmill {
namespace {

SourceInfo source_of(std::int64_t rows, std::int64_t columns, DType type, std::int64_t chunk_rows = 1) {
  SourceInfo info;
  info.rows = rows;
  info.columns = columns;
  info.type = {type, false};
  info.storage_chunk_rows = chunk_rows;
  return info;
}

TEST(BlockRows, OfAWish_AreTheWish) {
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1000, 10, DType::f32, 64), 77), 77);
}

/// Rows of n entries each.
SourceInfo sparse_source(std::int64_t rows, std::int64_t columns, std::int64_t n) {
  SourceInfo info = source_of(rows, columns, DType::f32);
  info.entries = rows * n;
  info.entry_pairs = static_cast<double>(rows) * static_cast<double>(n * (n + 1)) / 2;
  return info;
}

TEST(BlockRows, OfSparseRows_CountWhatTheyHold) {
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, sparse_source(1'000'000, 100'000, 85), 0), 1020);
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, sparse_source(1'000'000, 100'000, 0), 0), 131072);
}

TEST(Products, OfSparseRows_AreMadeByEntriesWhereThatIsLessWork) {
  const std::unique_ptr<Backend> backend = make_host_backend();
  const std::unique_ptr<Ops> ops = make_host_ops(*backend);
  EXPECT_TRUE(multiplies_by_entries("auto", sparse_source(1000, 2000, 40), *ops));
  EXPECT_TRUE(multiplies_by_entries("fp64", sparse_source(1000, 2000, 40), *ops));
  EXPECT_FALSE(multiplies_by_entries("fp32", sparse_source(1000, 2000, 40), *ops)) << "it is fp64";
  EXPECT_TRUE(multiplies_by_entries("auto", sparse_source(1000, 2000, 220), *ops));
  EXPECT_FALSE(multiplies_by_entries("auto", sparse_source(1000, 2000, 230), *ops));
  EXPECT_TRUE(multiplies_by_entries("auto", sparse_source(1000, 2000, 0), *ops));
  EXPECT_FALSE(multiplies_by_entries("auto", source_of(1000, 2000, DType::f32), *ops));
}

TEST(BlockRows, OfContiguousRows_FillThePreferredBytes) {
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1'000'000, 512, DType::f32), 0), 512);
}

TEST(BlockRows, OfWideRows_AreAtLeastThePreferredRows) {
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1'000'000, 100'000, DType::f64), 0), 256);
}

TEST(BlockRows, OfSmallStorageChunks_AreWholeChunks) {
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1'000'000, 512, DType::f32, 100), 0), 500);
}

TEST(BlockRows, OfLargerStorageChunks_AreOneChunkUpToEightBlocks) {
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1'000'000, 512, DType::f32, 4096), 0), 4096);
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1'000'000, 512, DType::f32, 4097), 0), 512);
}

TEST(BlockRows, OfTallStorageChunks_AreAPartOfThemWhereThatIsNotMuchLess) {
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1'000'000, 512, DType::f32, 10'000), 0), 500);
  EXPECT_EQ(choose_block_rows({1 << 20, 256}, source_of(1'000'000, 512, DType::f32, 7813), 0), 512);  // 13 x 601
}

/// What a device offers and is called; its operations are not asked for.
class NamedDevice {
 public:
  explicit NamedDevice(int compute_capability) : ops_(make_host_ops(*backend_)), device_(*ops_, compute_capability) {}

  ProductChoice choose(const std::string& wish, DType type, double rtol, std::int64_t columns = 100) const {
    return choose_precision(wish, {{type, false}, false, device_.compute_capability()}, columns, rtol, device_);
  }
  /// The message of the refusal, or "" if there is none.
  std::string refusal(const std::string& wish, DType type, double rtol) const {
    try {
      choose(wish, type, rtol);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
  }

 private:
  class Device final : public test::ForwardingOps {
   public:
    Device(Ops& ops, int compute_capability) : ForwardingOps(ops), compute_capability_(compute_capability) {}
    std::string device_name() const override { return "NVIDIA H200"; }
    int compute_capability() const override { return compute_capability_; }
    bool offers(Precision precision, ElementType type) const override {
      if (compute_capability_ == 0) return ForwardingOps::offers(precision, type);
      return precision != Precision::int8 || size_of(type) == 1;
    }

   private:
    int compute_capability_;
  };

  std::unique_ptr<Backend> backend_ = make_host_backend();
  std::unique_ptr<Ops> ops_;
  Device device_;
};

TEST(Precision, AutoOnHosts_IsFp32ForNarrowTypesWithinTheBound) {
  const NamedDevice host(0);
  EXPECT_EQ(host.choose("auto", DType::f32, 3e-5).precision, Precision::fp32);
  EXPECT_EQ(host.choose("auto", DType::u8, 3e-5).precision, Precision::fp32);
  EXPECT_EQ(host.choose("auto", DType::f64, 3e-5).precision, Precision::fp64);
  EXPECT_EQ(host.choose("auto", DType::i64, 3e-5).precision, Precision::fp64);
  EXPECT_EQ(host.choose("auto", DType::f32, 1e-6).precision, Precision::fp64);
  EXPECT_EQ(host.choose("auto", DType::f32, 3e-5, 65536).precision, Precision::fp32) << "whatever the columns";
}

TEST(Precision, AutoOnDevices_LooksAtTheColumns) {
  const NamedDevice device(90);
  EXPECT_EQ(device.choose("auto", DType::f32, 3e-5, 1000).precision, Precision::fp64);
  EXPECT_EQ(device.choose("auto", DType::f32, 3e-5, 10000).precision, Precision::bf16x3);
  EXPECT_EQ(device.choose("auto", DType::u8, 3e-5, 10000).precision, Precision::int8);
}

TEST(Precision, ThatCannotMeetRtol_IsRefused_WithWhatItGuarantees) {
  EXPECT_NE(NamedDevice(0).refusal("fp32", DType::f32, 1e-6).find("fp32 guarantees 2.31e-05 and cannot meet"),
            std::string::npos);
  const NamedDevice device(90);
  EXPECT_NE(device.refusal("bf16", DType::f32, 3e-5).find("bf16 guarantees 0.00783 and"), std::string::npos)
      << device.refusal("bf16", DType::f32, 3e-5);
  EXPECT_EQ(device.refusal("bf16", DType::f32, 1e-2), "");
  EXPECT_EQ(device.choose("bf16", DType::f32, 7.85e-3).chain_rows, 512);
  EXPECT_EQ(device.refusal("fp64", DType::f32, 0), "");
}

TEST(Precision, ThatIsNotOffered_IsRefused) {
  EXPECT_NE(NamedDevice(0).refusal("bf16", DType::f32, 1).find("--precision bf16 needs a GPU"), std::string::npos);
  EXPECT_NE(NamedDevice(90).refusal("int8", DType::f32, 1).find("not offered for float32"), std::string::npos);
  EXPECT_EQ(NamedDevice(90).refusal("int8", DType::i8, 0), "");
  EXPECT_NE(NamedDevice(0).refusal("fp17", DType::f32, 1e-3).find("--precision must be auto"), std::string::npos);
}

PartialLayout layout_of(std::int64_t sums) {
  PartialLayout layout;
  layout.add("sum", ElementKind::binned, Combine::sum, sums);
  return layout;
}

TEST(MemoryPlan, ThatFits_StaysWithinTheBudget) {
  const PartialLayout layout = layout_of(100'000);
  const std::int64_t budget = resident_memory() + (256 << 20);
  for (const std::int64_t slot : {1 << 16, 1 << 20, 1 << 23, 1 << 25}) {
    const MemoryPlan plan = plan_memory({budget, 1, 8, 64, 0, 0}, layout, slot, 1'000'000);
    EXPECT_LE(plan.expected(), budget) << slot;
    EXPECT_GE(plan.slots, 2);
    EXPECT_GE(plan.lanes, 1);
  }
}

TEST(MemoryPlan, OfSparseRows_KeepsWithinATenthOfTheDenseOnesWhereThatIsEnough) {
  const PartialLayout layout = layout_of(1'000'000);  // 27 MB a lane
  const auto planned = [&](std::int64_t memory, std::int64_t tenth) {
    MemoryWish wish{memory, 1, 8, 4, 0, 0};
    wish.dense_bytes = 10 * tenth;
    return plan_memory(wish, layout, 1 << 20, 1000);
  };
  const std::int64_t tenth = resident_memory() + 145'000'000;
  const MemoryPlan small = planned(0, tenth);
  EXPECT_LE(small.expected(), tenth);
  EXPECT_EQ(small.lanes, 3);
  EXPECT_EQ(planned(0, 1 << 20).lanes, 8) << "one lane does not fit in it";
  EXPECT_EQ(planned(0, 0).lanes, 8) << "dense rows";
  EXPECT_EQ(planned(4LL << 30, tenth).lanes, 8) << "as --memory says";
}

TEST(MemoryPlan, OfALaterPass_CountsTheProgramOnce) {
  MemoryWish wish{1LL << 30, 1, 1, 4, 0, 0};
  wish.program_bytes = 5 << 20;
  const std::int64_t fixed = plan_memory(wish, layout_of(10), 1 << 20, 1000).fixed_bytes;
  EXPECT_LT(fixed, 16 << 20);
  wish.program_bytes += 1 << 20;
  EXPECT_EQ(plan_memory(wish, layout_of(10), 1 << 20, 1000).fixed_bytes, fixed + (1 << 20));
}

TEST(MemoryPlan, OfALargePartial_TakesFewerLanes) {
  const PartialLayout layout = layout_of(1'000'000);  // 27 MB a lane
  const std::int64_t tight = resident_memory() + 145'000'000;
  EXPECT_EQ(plan_memory({tight, 1, 8, 4, 0, 0}, layout, 1 << 20, 1000).lanes, 3);
  EXPECT_EQ(plan_memory({4LL << 30, 1, 8, 4, 0, 0}, layout, 1 << 20, 1000).lanes, 8);
}

std::string refusal_of(const MemoryWish& wish, std::int64_t sums, std::int64_t slot_bytes) {
  try {
    plan_memory(wish, layout_of(sums), slot_bytes, 1000);
  } catch (const Error& error) {
    return error.what();
  }
  return "was planned";
}

TEST(MemoryPlan, ThatDoesNotFit_NamesOnlyWhatWouldHelp) {
  const auto says = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  const std::int64_t room = resident_memory() + (16 << 20);
  const std::string wide = refusal_of({room, 1, 1, 4, 0, 0}, 10'000'000, 1 << 20);
  EXPECT_TRUE(says(wide, "--columns") && !says(wide, "--block-rows") && !says(wide, "on a node")) << wide;
  const std::string tall = refusal_of({room, 1, 1, 4, 0, 0}, 10, 64 << 20);
  EXPECT_TRUE(says(tall, "lower --block-rows") && !says(tall, "--columns")) << tall;
  const std::string many = refusal_of({2 * room, 4, 1, 4, 0, 0}, 10, 1 << 10);
  EXPECT_TRUE(says(many, "start at most") || says(many, "start one rank")) << many;
  EXPECT_TRUE(says(many, "raise --memory to ")) << many;
  const std::string endless = refusal_of({room, 1, 1, 4, 0, 0}, std::int64_t{1} << 40, 1 << 20);
  EXPECT_TRUE(says(endless, "a node with more memory") && !says(endless, "raise --memory")) << endless;
}

TEST(MemoryPlan, ThatDoesNotFit_FitsWithTheMemoryThatItAsksFor) {
  const std::string refused = refusal_of({1 << 20, 2, 1, 4, 0, 0}, 100'000, 1 << 20);
  const std::string mark = "raise --memory to ";
  const std::size_t at = refused.find(mark);
  ASSERT_NE(at, std::string::npos) << refused;
  const std::string rest = refused.substr(at + mark.size());
  const std::int64_t asked = parse_size(rest.substr(0, rest.find(' ')));
  EXPECT_EQ(refusal_of({asked + (4 << 20), 2, 1, 4, 0, 0}, 100'000, 1 << 20), "was planned");  // memory grows meanwhile
}

/// A small file may claim a billion rows.
TEST(MemoryPlan, OfVeryManyBlocks_CountsTheListOfThem) {
  const PartialLayout layout = layout_of(1);
  const std::int64_t budget = resident_memory() + (256 << 20);
  EXPECT_NO_THROW(plan_memory({budget, 1, 1, 4, 0, 0}, layout, 1 << 20, 1'000'000));
  EXPECT_THROW(plan_memory({budget, 1, 1, 4, 0, 0}, layout, 1 << 20, 100'000'000), Error);
}

TEST(MemoryPlan, IsSharedByTheRanksOfANode) {
  const PartialLayout layout = layout_of(10);
  EXPECT_EQ(plan_memory({8LL << 30, 4, 1, 4, 0, 0}, layout, 1 << 20, 1000).budget, 2LL << 30);
}

TEST(MemoryPlan, ThatDoesNotFit_NamesTheNeed) {
  try {
    plan_memory({1 << 20, 1, 1, 4, 0, 0}, layout_of(1'000'000), 1 << 26, 1000);
    FAIL() << "was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("--memory"), std::string::npos) << error.what();
  }
}

TEST(MemoryPlan, OfReadersThatTakeMemory_TakesFewerOfThem) {
  const std::int64_t budget = resident_memory() + (100 << 20);
  const MemoryPlan plan = plan_memory({budget, 1, 2, 4, 8, 20 << 20, 0, true}, layout_of(10), 1 << 20, 1000);
  EXPECT_LE(plan.expected(), budget);
  EXPECT_EQ(plan.lanes, 2);
  EXPECT_EQ(plan.io_threads, 4);
  EXPECT_GE(plan.slots, 3);
}

TEST(MemoryPlan, OfLanesThatDecode_CountsTheirMemoryToo) {
  const std::int64_t budget = resident_memory() + (130 << 20), each = 20 << 20;
  const MemoryPlan plan = plan_memory({budget, 1, 2, 4, 8, each, 0, false}, layout_of(10), 1 << 20, 1000);
  EXPECT_LE(plan.expected(), budget);
  EXPECT_EQ(plan.lanes, 2);
  EXPECT_TRUE(plan.lanes_read);
  EXPECT_GE(plan.io_threads, 1);
  EXPECT_EQ(plan.expected() - plan.fixed_bytes - plan.lanes * plan.lane_bytes - plan.slots * plan.slot_bytes,
            (plan.lanes + plan.io_threads) * each);
}

TEST(MemoryPlan, OfASourceThatKeepsBands_CountsThem) {
  const std::int64_t budget = resident_memory() + (100 << 20);
  const MemoryPlan plan = plan_memory({budget, 1, 2, 4, 8, 0, 50 << 20, false}, layout_of(10), 1 << 20, 1000);
  EXPECT_LE(plan.expected(), budget);
  EXPECT_GE(plan.expected(), plan.fixed_bytes + (50 << 20));
  EXPECT_THROW(plan_memory({budget, 1, 2, 4, 8, 0, 120 << 20, false}, layout_of(10), 1 << 20, 1000), Error);
}

TEST(DeviceMemoryPlan, WithRoomForAll_HasTwoLanesAndKeepsPartialsOffTheNode) {
  const PartialLayout layout = layout_of(1'000'000);
  const auto lane = static_cast<std::int64_t>(layout.total_bytes());
  const MemoryPlan plan =
      plan_device_memory({8LL << 30, 1, 0, 4, 3, 0}, {100LL << 30, 40 << 20}, layout, 64 << 20, 1000);
  EXPECT_EQ(plan.lanes, 2);
  EXPECT_EQ(plan.io_threads, 3);
  EXPECT_EQ(plan.slots, 6);
  EXPECT_EQ(plan.expected(), plan.fixed_bytes + 6 * (64LL << 20));
  EXPECT_EQ(plan.expected_on_device(), plan.device_fixed + 2 * (lane + (40LL << 20)) + 6 * (64LL << 20));
}

TEST(DeviceMemoryPlan, OfAnyRoom_StaysWithinBothBudgetsOrIsRefused) {
  const PartialLayout layout = layout_of(1'000'000);  // 27 MB a lane
  int planned = 0, refused = 0;
  for (std::int64_t device = 16 << 20; device <= (1LL << 30); device += 33 << 20) {
    for (const std::int64_t node : {256LL << 20, 400LL << 20, 2LL << 30}) {
      try {
        const std::int64_t budget = resident_memory() + node;
        const MemoryPlan plan = plan_device_memory({budget, 1, 0, 4, 4, 8 << 20}, {device, 0}, layout, 16 << 20, 1000);
        EXPECT_LE(plan.expected(), budget);
        EXPECT_LE(plan.expected_on_device(), device);
        EXPECT_GE(plan.slots, plan.lanes + 1);
        ++planned;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        ++refused;
      }
    }
  }
  EXPECT_GT(planned, 10);
  EXPECT_GT(refused, 2);
}

TEST(DeviceMemoryPlan, WithLittleRoom_HasOneLaneAndFewerSlots) {
  const PartialLayout layout = layout_of(1'000'000);
  const auto lane = static_cast<std::int64_t>(layout.total_bytes());
  const std::int64_t least = 2 * lane + 2 * (16 << 20);
  const MemoryWish wish{4LL << 30, 1, 0, 4, 1, 0};
  const MemoryPlan plan = plan_device_memory(wish, {least, 0}, layout, 16 << 20, 1000);
  EXPECT_EQ(plan.lanes, 1);
  EXPECT_EQ(plan.slots, 2);
  try {
    plan_device_memory(wish, {least - 1, 0}, layout, 16 << 20, 1000);
    FAIL() << "was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("--device-memory"), std::string::npos) << error.what();
  }
}

TEST(DeviceMemoryPlan, OfStagingThatTheNodeHasNot_IsRefused) {
  EXPECT_THROW(plan_device_memory({1 << 20, 1, 0, 4, 1, 0}, {100LL << 30, 0}, layout_of(10), 64 << 20, 1000), Error);
}

TEST(BlockRows, OnAGpu_AreLargerAndOnHostsAsTheJobPrefers) {
  const BlockPreference job{1 << 20, 256};
  EXPECT_EQ(preference_on("host", job).bytes, job.bytes);
  EXPECT_EQ(preference_on("host-async", job).bytes, job.bytes);
  EXPECT_EQ(preference_on("cuda", job).bytes, 64 << 20);
  EXPECT_EQ(preference_on("cuda", job).rows, job.rows);
}

TEST(MemoryPlan, OfARankWithoutBlocks_IsStillAPlan) {
  const MemoryPlan plan = plan_memory({8LL << 30, 1, 4, 4, 0, 0}, layout_of(10), 1 << 20, 0);
  EXPECT_EQ(plan.lanes, 1);
  EXPECT_EQ(plan.slots, 2);
}

}  // namespace
}  // namespace rowmill
