#include <string>

#include "tests/comm/comm_fixture.hpp"

namespace rowmill::testing {
namespace {

class Agree : public CommTest {
 protected:
  /// All ranks must get this answer, the message only where it comes from.
  void expect_failure(const Agreement& agreement, int of, ExitCode code) {
    EXPECT_FALSE(agreement.ok);
    EXPECT_EQ(agreement.rank, of);
    EXPECT_EQ(agreement.code, code);
    EXPECT_EQ(agreement.message, rank() == of ? message_of(of) : "");
  }
  static std::string message_of(int of) { return "rank " + std::to_string(of) + " cannot"; }
  Failure failure(ExitCode code, std::optional<std::int64_t> row = {}) const { return {code, row, message_of(rank())}; }

  /// All ranks have left the transfers before: the next round's failure is not taken for one of this round.
  void settle() { EXPECT_TRUE(comm().agree(std::nullopt, beat).ok); }

  std::int64_t sum_of_ones() {
    std::int64_t one = 1;
    comm().reduce(backend, &one, 1, ElementKind::i64, Combine::sum, queue);
    return one;
  }
};

TEST_F(Agree, WithoutFailure_IsOkEveryTime) {
  for (int round = 0; round < 50; ++round) {
    be_late(round < 5 ? round % size() : -1);
    const Agreement agreement = comm().agree(std::nullopt, beat);
    EXPECT_TRUE(agreement.ok);
    EXPECT_EQ(agreement.code, ExitCode::ok);
    EXPECT_EQ(agreement.rank, -1);
    EXPECT_EQ(agreement.message, "");
  }
}

TEST_F(Agree, OnAFailureOfAnyRank_IsTheSameEverywhere) {
  for (int failing = 0; failing < size(); ++failing) {
    const auto mine = rank() == failing ? std::optional(failure(ExitCode::input)) : std::nullopt;
    expect_failure(comm().agree(mine, beat), failing, ExitCode::input);
    EXPECT_TRUE(comm().agree(std::nullopt, beat).ok) << "failures are forgotten";
  }
}

TEST_F(Agree, OnSeveralRows_TakesTheSmallest) {
  for (int smallest = 0; smallest < size(); ++smallest) {
    const std::int64_t row = rank() == smallest ? 5 : 1000 - rank();
    expect_failure(comm().agree(failure(ExitCode::input, row), beat), smallest, ExitCode::input);
  }
}

TEST_F(Agree, OnAFailureWithoutRow_TakesItBeforeRows) {
  for (int rowless = 0; rowless < size(); ++rowless) {
    const Failure mine = rank() == rowless ? failure(ExitCode::failed) : failure(ExitCode::input, 0);
    expect_failure(comm().agree(mine, beat), rowless, ExitCode::failed);
  }
}

TEST_F(Agree, OnEqualFailures_TakesTheLowestRank) {
  expect_failure(comm().agree(failure(ExitCode::device), beat), 0, ExitCode::device);
  expect_failure(comm().agree(failure(ExitCode::input, 7), beat), 0, ExitCode::input);
}

TEST_F(Agree, AfterAnnouncing_CountsWhatWasAnnounced) {
  const int failing = size() / 2;
  if (rank() == failing) {
    comm().announce(failure(ExitCode::input, 40));
    comm().announce(failure(ExitCode::input, 30));
    comm().announce(failure(ExitCode::input, 50));
  }
  expect_failure(comm().agree(std::nullopt, beat), failing, ExitCode::input);
}

TEST_F(Agree, AnnouncedRows_ReachEveryPollAndTheSmallestWins) {
  if (rank() == 0) comm().announce(failure(ExitCode::input, 100));
  EXPECT_TRUE(poll_until([](const Verdict& verdict) { return verdict.failed && verdict.before_row; }));
  if (rank() == size() - 1) comm().announce(failure(ExitCode::input, 50));
  EXPECT_TRUE(poll_until([](const Verdict& verdict) { return verdict.before_row == 50; }));
  expect_failure(comm().agree(std::nullopt, beat), size() - 1, ExitCode::input);
  EXPECT_FALSE(comm().poll(beat).failed) << "failures are forgotten";
}

TEST_F(Agree, AnAnnouncedFailureWithoutRow_TellsEveryPollToEndAtOnce) {
  if (rank() == size() - 1) comm().announce(failure(ExitCode::failed));
  EXPECT_TRUE(poll_until([](const Verdict& verdict) { return verdict.failed && !verdict.before_row; }));
  expect_failure(comm().agree(std::nullopt, beat), size() - 1, ExitCode::failed);
}

TEST_F(Agree, ARequestToStop_ReachesEveryPollAndEndsWithTheAgreement) {
  for (int asking = 0; asking < size(); ++asking) {
    if (rank() == asking) comm().request_stop();
    EXPECT_TRUE(poll_until([](const Verdict& verdict) { return verdict.stop && !verdict.failed; }));
    EXPECT_EQ(sum_of_ones(), size()) << "a request to stop is no failure";
    EXPECT_TRUE(comm().agree(std::nullopt, beat).ok);
    EXPECT_FALSE(comm().poll(beat).stop);
    EXPECT_EQ(sum_of_ones(), size());  // nobody asks again before all have looked
  }
}

TEST_F(Agree, WhileOthersReduce_FreesThemAndTheCommunicatorWorksOn) {
  for (int failing = 0; failing < size(); ++failing) {
    if (rank() == failing) {
      be_late(failing);
      comm().announce(failure(ExitCode::input, 9));
    } else {
      std::vector<std::int64_t> values((1 << 20) + 5, 1);
      const auto count = static_cast<std::int64_t>(values.size());
      EXPECT_THROW(comm().reduce(backend, values.data(), count, ElementKind::i64, Combine::sum, queue), PeerFailed);
    }
    expect_failure(comm().agree(std::nullopt, beat), failing, ExitCode::input);
    EXPECT_EQ(sum_of_ones(), size()) << "after the failure of rank " << failing;
    settle();
  }
}

TEST_F(Agree, WhileOthersWaitForItsBroadcast_FreesThem) {
  for (int failing = 0; failing < size(); ++failing) {
    std::vector<std::byte> bytes(10);
    if (rank() != failing) {
      EXPECT_THROW(comm().broadcast(bytes, failing), PeerFailed);
    }
    const auto mine = rank() == failing ? std::optional(failure(ExitCode::failed)) : std::nullopt;
    expect_failure(comm().agree(mine, beat), failing, ExitCode::failed);
    comm().broadcast(bytes, failing);
    settle();
  }
}

/// Ranks that are late for what they mill by still get it: they may have an earlier row.
TEST_F(Agree, OfARow_DoesNotFreeRanksFromABroadcast) {
  if (size() < 3) GTEST_SKIP() << "needs three ranks";
  const int failing = size() - 1, late = 1;
  const auto mine = rank() == failing ? std::optional(failure(ExitCode::input, 39)) : std::nullopt;
  if (rank() == late) {
    ASSERT_TRUE(poll_until([](const Verdict& verdict) { return verdict.before_row == 39; }));
  }
  std::vector<std::byte> bytes(rank() == 0 ? 5000 : 0, std::byte{7});
  EXPECT_NO_THROW(comm().broadcast(bytes, 0));
  EXPECT_EQ(bytes, std::vector<std::byte>(5000, std::byte{7}));
  if (mine) comm().announce(*mine);
  expect_failure(comm().agree(mine, beat), failing, ExitCode::input);
  settle();
}

TEST_F(Agree, WhileRankZeroGathers_FreesIt) {
  const int failing = size() - 1;
  if (rank() == failing) {
    be_late(failing);
    comm().announce(failure(ExitCode::failed));
  } else if (rank() == 0) {
    EXPECT_THROW(comm().gather({}), PeerFailed);
  }
  expect_failure(comm().agree(std::nullopt, beat), failing, ExitCode::failed);
  EXPECT_EQ(comm().gather({}).size(), rank() == 0 ? static_cast<std::size_t>(size()) : 0u);
}

TEST_F(Agree, AfterAnOwnFailure_TransfersAreRefusedUntilAgreed) {
  comm().announce(failure(ExitCode::failed));
  EXPECT_THROW(sum_of_ones(), PeerFailed);
  expect_failure(comm().agree(std::nullopt, beat), 0, ExitCode::failed);
  EXPECT_EQ(sum_of_ones(), size());
}

TEST_F(Agree, WithARankThatHasLeft_CallsItFailed) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  const int leaving = size() / 2;
  if (rank() == leaving) return;  // its World ends
  EXPECT_THROW(sum_of_ones(), PeerFailed);
  const Agreement agreement = comm().agree(std::nullopt, beat);
  EXPECT_FALSE(agreement.ok);
  EXPECT_EQ(agreement.rank, leaving);
  EXPECT_EQ(agreement.code, ExitCode::failed);
  EXPECT_THROW(sum_of_ones(), PeerFailed) << "with a rank gone nothing can be summed";
}

}  // namespace
}  // namespace rowmill::testing
