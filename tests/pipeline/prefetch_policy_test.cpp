#include "pipeline/prefetch_policy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace rowmill {
namespace {

void see_calm_reads(PrefetchPolicy& policy, int reads) {
  for (int i = 0; i < reads; ++i) policy.saw_read(false);
}

TEST(PrefetchPolicy, AtFirst_LetsAllReadersRead) {
  PrefetchPolicy policy(false, 2, 3);
  policy.saw_consumer(0);
  policy.saw_consumer(1);
  EXPECT_EQ(policy.readers_allowed(), 3);
}

TEST(PrefetchPolicy, WhileReadsDoNotSleep_LeavesTheCoresToConsumers) {
  PrefetchPolicy policy(false, 4, 3);
  see_calm_reads(policy, 1000);
  EXPECT_EQ(policy.readers_allowed(), 3);
  for (int round = 0; round < 2; ++round) {  // a consumer counts once
    policy.saw_consumer(0);
    policy.saw_consumer(7);
    EXPECT_EQ(policy.readers_allowed(), 2);
  }
  for (const int queue : {1, 2, 3}) policy.saw_consumer(queue);
  EXPECT_EQ(policy.readers_allowed(), 0);
}

TEST(PrefetchPolicy, AfterAReadThatSlept_LetsAllReadersReadAndSaysSo) {
  PrefetchPolicy policy(false, 1, 2);
  policy.saw_consumer(0);
  see_calm_reads(policy, 1000);
  EXPECT_EQ(policy.readers_allowed(), 0);
  EXPECT_TRUE(policy.saw_read(true));
  EXPECT_EQ(policy.readers_allowed(), 2);
  EXPECT_FALSE(policy.saw_read(true));
  EXPECT_FALSE(policy.saw_read(false));
  EXPECT_EQ(policy.readers_allowed(), 2);
  see_calm_reads(policy, 1000);
  EXPECT_EQ(policy.readers_allowed(), 0);
}

TEST(PrefetchPolicy, Always_NeverHoldsReadersBack) {
  PrefetchPolicy policy(true, 1, 2);
  policy.saw_consumer(0);
  see_calm_reads(policy, 1000);
  EXPECT_EQ(policy.readers_allowed(), 2);
  EXPECT_FALSE(policy.saw_read(true));
}

TEST(VoluntarySwitches, OfAThreadThatSleeps_Grow) {
  const std::int64_t before = voluntary_switches();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GT(voluntary_switches(), before);
}

}  // namespace
}  // namespace rowmill
