#include "core/pool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/memory_budget.hpp"

namespace rowmill {
namespace {

bool aligned(const void* memory, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(memory) % to == 0;
}

TEST(Pool, Allocate_OfAnySize_GivesUsableMemoryAlignedFor64Bytes) {
  MemoryPool pool;
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 4096, 4097, 100000}) {
    void* memory = pool.allocate(bytes);
    EXPECT_TRUE(aligned(memory, 64)) << bytes;
    std::memset(memory, 0xff, bytes);
    pool.release(memory, bytes);
  }
}

TEST(Pool, Allocate_OfTwoMebibytesAndMore_AlignsForHugePages) {
  MemoryPool pool;
  for (const std::size_t bytes : {std::size_t{2} << 20, (std::size_t{2} << 20) + 1, std::size_t{7} << 20}) {
    void* memory = pool.allocate(bytes);
    EXPECT_TRUE(aligned(memory, std::size_t{2} << 20)) << bytes;
    pool.release(memory, bytes);
  }
}

TEST(Pool, Release_ThenAllocateOfTheSameSize_GivesTheSameMemoryWithoutAskingTheSystem) {
  MemoryPool pool;
  void* first = pool.allocate(3 << 20);
  pool.release(first, 3 << 20);
  EXPECT_EQ(pool.allocate(3 << 20), first);
  EXPECT_EQ(pool.system_allocations(), 1);
  void* second = pool.allocate(3 << 20);
  EXPECT_NE(second, first);
  EXPECT_EQ(pool.system_allocations(), 2);
  pool.release(first, 3 << 20);
  pool.release(second, 3 << 20);
}

TEST(Pool, Use_AfterReleases_KeepsTheHighWaterMark) {
  MemoryPool pool;
  EXPECT_EQ(pool.use().current, 0);
  void* a = pool.allocate(4 << 20);
  void* b = pool.allocate(2 << 20);
  EXPECT_EQ(pool.use().current, 6 << 20);
  pool.release(a, 4 << 20);
  EXPECT_EQ(pool.use().current, 2 << 20);
  EXPECT_EQ(pool.use().high_water, 6 << 20);
  pool.release(b, 2 << 20);
  EXPECT_EQ(pool.use().current, 0);
  EXPECT_EQ(pool.use().high_water, 6 << 20);
}

TEST(Pool, Allocate_OfMoreThanThereIs_ThrowsFailedAndCountsNothing) {
  MemoryPool pool;
  for (const std::size_t bytes : {std::size_t{1} << 62, std::numeric_limits<std::size_t>::max()}) {
    try {
      pool.allocate(bytes);
      FAIL() << "no error for " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
    }
  }
  EXPECT_EQ(pool.use().current, 0);
  EXPECT_EQ(pool.use().high_water, 0);
  EXPECT_EQ(pool.system_allocations(), 0);
}

TEST(Pool, FromSeveralThreads_NeverGivesOneBufferToTwo) {
  MemoryPool pool;
  const auto work = [&pool](unsigned char mark) {
    for (int round = 0; round < 500; ++round) {
      const std::size_t bytes = 64 * (1 + static_cast<std::size_t>(round) % 3);
      auto* memory = static_cast<unsigned char*>(pool.allocate(bytes));
      std::memset(memory, mark, bytes);
      std::this_thread::yield();
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], mark);
      pool.release(memory, bytes);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned char mark = 1; mark <= 4; ++mark) threads.emplace_back(work, mark);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.use().current, 0);
  EXPECT_LE(pool.system_allocations(), 12);
}

TEST(Pool, OfAnotherSource_TakesFromItAndGivesAllBackToIt) {
  std::vector<std::size_t> taken, given;
  {
    MemoryPool pool({[&](std::size_t bytes) -> void* {
                       if (taken.size() == 2) return nullptr;
                       taken.push_back(bytes);
                       return std::aligned_alloc(64, bytes);
                     },
                     [&](void* memory, std::size_t bytes) {
                       given.push_back(bytes);
                       std::free(memory);
                     }});
    void* a = pool.allocate(100);
    void* b = pool.allocate(3 << 20);
    EXPECT_THROW(pool.allocate(64), Error) << "the source has nothing left";
    pool.release(a, 100);
    EXPECT_EQ(pool.allocate(100), a) << "reused, not taken anew";
    pool.release(a, 100);
    pool.release(b, 3 << 20);
    EXPECT_TRUE(given.empty());
  }
  EXPECT_EQ(taken, (std::vector<std::size_t>{128, 4 << 20}));
  EXPECT_EQ(given, taken);
}

TEST(MemoryBudget, OfALimit_IsNeverPassedAndNamesWhatIsThere) {
  MemoryBudget budget(100);
  budget.take(60);
  budget.take(40);
  try {
    budget.take(1);
    FAIL() << "one byte too many";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::device);
    EXPECT_NE(std::string(error.what()).find("1 B asked for, 100 B in use of 100 B"), std::string::npos)
        << error.what();
  }
  budget.give_back(60);
  EXPECT_THROW(budget.take(61), Error);
  budget.take(60);
  EXPECT_EQ(budget.use().current, 100);
  EXPECT_EQ(budget.use().high_water, 100);
  EXPECT_EQ(budget.use().limit, 100);
}

TEST(MemoryPool, Trimmed_GivesBackWhatNobodyHas) {
  int taken = 0, given_back = 0;
  MemoryPool pool({[&](std::size_t bytes) {
                     ++taken;
                     return std::malloc(bytes);
                   },
                   [&](void* memory, std::size_t) {
                     ++given_back;
                     std::free(memory);
                   }});
  void* const kept = pool.allocate(100);
  pool.release(pool.allocate(100), 100);
  pool.trim();
  EXPECT_EQ(given_back, 1);
  pool.release(pool.allocate(100), 100);
  EXPECT_EQ(taken, 3) << "what was given back is not had any more";
  pool.release(kept, 100);
  pool.trim();
  EXPECT_EQ(given_back, 3);
}

TEST(MemoryBudget, WithoutALimit_StillCounts) {
  MemoryBudget budget(0);
  budget.take(std::size_t{1} << 50);
  budget.give_back(std::size_t{1} << 50);
  EXPECT_EQ(budget.use().current, 0);
  EXPECT_EQ(budget.use().high_water, std::int64_t{1} << 50);
  EXPECT_THROW(budget.take(std::numeric_limits<std::size_t>::max()), Error);
}

}  // namespace
}  // namespace rowmill
