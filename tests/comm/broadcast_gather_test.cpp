#include "tests/comm/comm_fixture.hpp"

namespace rowmill::testing {
namespace {

std::vector<std::byte> bytes_of(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

using Broadcast = CommTest;
using Gather = CommTest;

TEST_F(Broadcast, FromAnyRank_GivesItsBytesWhateverWasThere) {
  for (int root = 0; root < size(); ++root) {
    for (const std::size_t count : {0, 1, 1000, (8 << 20) + 5}) {
      const std::vector<std::byte> theirs = bytes_of(seed + static_cast<std::uint64_t>(root), count);
      std::vector<std::byte> bytes(static_cast<std::size_t>(17 * rank()), std::byte{0xee});
      if (rank() == root) bytes = theirs;
      comm().broadcast(bytes, root);
      EXPECT_TRUE(bytes == theirs) << "seed " << seed << " root " << root << " count " << count;
    }
  }
}

TEST_F(Gather, OfUnequalSizes_ComesInOrderOfRanks) {
  const auto count_of = [](int from) { return static_cast<std::size_t>(from == 1 ? (8 << 20) + 3 : 10 * from); };
  const auto seed_of = [&](int from) { return seed + static_cast<std::uint64_t>(from); };
  const auto all = comm().gather(bytes_of(seed_of(rank()), count_of(rank())));
  if (rank() != 0) {
    EXPECT_TRUE(all.empty());
    return;
  }
  ASSERT_EQ(static_cast<int>(all.size()), size());
  for (int from = 0; from < size(); ++from) {
    EXPECT_TRUE(all[static_cast<std::size_t>(from)] == bytes_of(seed_of(from), count_of(from)))
        << "seed " << seed << " rank " << from;
  }
}

TEST_F(Broadcast, FollowedByLeaving_HarmsNoLateRank) {
  be_late(size() - 1);
  std::vector<std::byte> bytes = bytes_of(1, rank() == 0 ? 100 : 0);
  EXPECT_NO_THROW(comm().broadcast(bytes, 0));
  EXPECT_EQ(bytes.size(), 100u);
}

}  // namespace
}  // namespace rowmill::testing
