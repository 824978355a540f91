#include "core/numa.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/scratch.hpp"

namespace rowmill {
namespace {

using Processors = std::vector<int>;

TEST(ProcessorList, OfTheKernelsForm_IsRead) {
  EXPECT_EQ(parse_processor_list("0-3,8,10-11"), (Processors{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_processor_list("7"), Processors{7});
  EXPECT_EQ(parse_processor_list("0-1\n"), (Processors{0, 1}));
  EXPECT_EQ(parse_processor_list(""), Processors{});
}

TEST(ProcessorList, OfAnotherForm_IsEmpty) {
  for (const char* text : {"x", "3-1", "1-", "-1", "0-99999999", "1,,2", "1:2", "0-3,x"}) {
    EXPECT_EQ(parse_processor_list(text), Processors{}) << text;
  }
}

TEST(Node, OfAFolder_HasTheProcessorsOfItsFile) {
  const test::ScratchFolder folder;
  std::filesystem::create_directory(folder / "node1");
  std::ofstream(folder / "node1/cpulist") << "4-5,9\n";
  EXPECT_EQ(processors_of_node(1, folder.path().string()), (Processors{4, 5, 9}));
  EXPECT_EQ(processors_of_node(0, folder.path().string()), Processors{});
  EXPECT_EQ(processors_of_node(-1, folder.path().string()), Processors{});
}

Processors allowed_here() {
  cpu_set_t set;
  Processors allowed;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) allowed.push_back(i);
  }
  return allowed;
}

TEST(StayOn, SomeOfTheProcessorsThatAreAllowed_NarrowsThisThreadOnly) {
  const Processors before = allowed_here();
  ASSERT_FALSE(before.empty());
  Processors within;
  bool done = false;
  std::thread([&] {
    done = stay_on({before.back(), CPU_SETSIZE + 5});
    within = allowed_here();
  }).join();
  EXPECT_TRUE(done);
  EXPECT_EQ(within, Processors{before.back()});
  EXPECT_EQ(allowed_here(), before);
}

TEST(StayOn, ProcessorsThatAreNotAllowed_ChangesNothing) {
  const Processors before = allowed_here();
  EXPECT_FALSE(stay_on({}));
  EXPECT_FALSE(stay_on({CPU_SETSIZE + 5}));
  EXPECT_EQ(allowed_here(), before);
}

TEST(MapNear, OfAnySizeAndNode_GivesZeroedMemoryAlignedForHugePages) {
  for (const int node : {-1, 0, 1000, 5000}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{2} << 20, (std::size_t{96} << 20) + 4097}) {
      auto* memory = static_cast<unsigned char*>(map_near(bytes, node));
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (2 << 20), 0U);
      EXPECT_EQ(memory[0] | memory[bytes / 2] | memory[bytes - 1], 0);
      std::memset(memory, 0xff, bytes);
      unmap_near(memory, bytes);
    }
  }
}

TEST(MapNear, OfNothingOrMoreThanThereIs_IsNull) {
  EXPECT_EQ(map_near(0, -1), nullptr);
  EXPECT_EQ(map_near(SIZE_MAX, -1), nullptr);
  EXPECT_EQ(map_near(std::size_t{1} << 62, 0), nullptr);
  unmap_near(nullptr, 0);
}

}  // namespace
}  // namespace rowmill
