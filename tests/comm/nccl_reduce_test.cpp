// The communicator over NCCL, on a double of NCCL's entry points: right sums, and failures that reach every rank.
#include "comm/nccl_reduce.hpp"

#include <cstring>
#include <limits>
#include <thread>

#include "tests/comm/comm_fixture.hpp"
#include "tests/comm/nccl_double.hpp"
#include "tests/comm/reduce_data.hpp"

namespace rowmill::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Nccl : public CommTest {
 protected:
  void SetUp() override {
    CommTest::SetUp();
    lane = device.make_queue();
  }

  NcclDouble& make_double(const NcclFaults& faults = {}) { return nccl.emplace(comm(), device, faults); }

  void make(const NcclFaults& faults = {}, NcclTimes times = {.timeout = seconds(20)}) {
    make_double(faults);
    over_nccl = make_nccl_communicator(comm(), device, {nccl->calls(), {}}, times);
  }

  /// Device memory with `values` on their way into it.
  template <typename T>
  DeviceBuffer put(std::vector<T> values) {
    DeviceBuffer memory(device, values.size() * sizeof(T) + 1, lane);
    device.submit(lane, [to = memory.data(), values = std::move(values)] {
      std::memcpy(to, values.data(), values.size() * sizeof(T));
    });
    return memory;
  }
  template <typename T>
  std::vector<T> get(const DeviceBuffer& memory) {
    std::vector<T> values((memory.size() - 1) / sizeof(T));
    device.copy(values.data(), memory.data(), values.size() * sizeof(T), lane);
    device.wait_host(device.record(lane));
    return values;
  }

  template <typename T>
  void check(ElementKind kind, Combine how, std::int64_t count) {
    const std::vector<T> mine = data_of<T>(seed, rank(), count);
    const DeviceBuffer memory = put(mine);
    over_nccl->reduce(device, memory.data(), count, kind, how, lane);
    EXPECT_TRUE(get<T>(memory) == expected<T>(seed, size(), count, how))
        << "seed " << seed << " kind " << static_cast<int>(kind) << " how " << static_cast<int>(how) << " count "
        << count;
  }

  /// Sums one number a rank; what came of it on this rank.
  enum class Came { sum, wrong_sum, peer_failed, device_error, other_error };
  Came sum_once() {
    const DeviceBuffer memory = put(std::vector<std::int64_t>{1});
    try {
      over_nccl->reduce(device, memory.data(), 1, ElementKind::i64, Combine::sum, lane);
      return get<std::int64_t>(memory)[0] == size() ? Came::sum : Came::wrong_sum;
    } catch (const PeerFailed&) {
      return Came::peer_failed;
    } catch (const Error& error) {
      said = error.what();
      return error.code() == ExitCode::device ? Came::device_error : Came::other_error;
    }
  }

  /// All ranks agree on a failure of the device; the message stands with exactly one of them.
  void expect_agreed_failure(const std::string& words, int failed = -1) {
    const Agreement agreement = comm().agree(std::nullopt, beat);
    EXPECT_FALSE(agreement.ok);
    EXPECT_EQ(agreement.code, ExitCode::device);
    EXPECT_TRUE(failed < 0 || agreement.rank == failed) << agreement.rank;
    EXPECT_EQ(agreement.message.empty(), agreement.rank != rank()) << agreement.message;
    EXPECT_TRUE(agreement.rank != rank() || agreement.message.find(words) != std::string::npos) << agreement.message;
  }

  test::FaultyBackend device{make_async_host_backend(), {.queue_delay = std::chrono::microseconds(200)}};
  Queue lane;
  std::optional<NcclDouble> nccl;
  std::unique_ptr<Communicator> over_nccl;
  std::string said;
};

TEST_F(Nccl, IntegersOfAllKinds_BySumMinMax_AreExactAtOddCounts) {
  make();
  for (const Combine how : {Combine::sum, Combine::min, Combine::max}) {
    for (const std::int64_t count : {1, 7, 4097}) {
      check<std::int8_t>(ElementKind::i8, how, count);
      check<std::int32_t>(ElementKind::i32, how, count);
      check<std::int64_t>(ElementKind::i64, how, count);
    }
  }
}

TEST_F(Nccl, Float64_ByMinMax_IsExact) {
  make();
  for (const Combine how : {Combine::min, Combine::max}) check<double>(ElementKind::f64, how, 1001);
}

TEST_F(Nccl, ManyElements_GoInOneOperation) {
  make();
  const std::int64_t before = nccl->operations();
  check<std::int8_t>(ElementKind::i8, Combine::max, (1 << 22) + 3);
  EXPECT_EQ(nccl->operations(), before + 1);
}

TEST_F(Nccl, CountsBeyondInt32_ReachNcclWhole) {
  make_double();
  NcclCalls calls = nccl->calls();
  std::size_t asked = 0;
  const auto all_reduce = calls.all_reduce;
  calls.all_reduce = [&](void* data, std::size_t count, NcclCalls::Type type, NcclCalls::Op op, NcclCalls::Comm one,
                         void* stream) {
    asked = count;
    return all_reduce(data, std::min(count, std::size_t{1}), type, op, one, stream);
  };
  over_nccl = make_nccl_communicator(comm(), device, {calls, {}}, {.timeout = seconds(20)});
  const DeviceBuffer memory = put(std::vector<std::int8_t>{1});
  const std::int64_t many = (std::int64_t{1} << 33) + 5;
  over_nccl->reduce(device, memory.data(), many, ElementKind::i8, Combine::max, lane);
  EXPECT_EQ(asked, static_cast<std::size_t>(many));
}

TEST_F(Nccl, AListOfReductions_GoesInOneGroup) {
  make();
  const auto tops = data_of<std::int8_t>(seed, rank(), 33);
  const auto counts = data_of<std::int64_t>(seed + 1, rank(), 1001);
  const auto lows = data_of<double>(seed + 2, rank(), 5);
  const DeviceBuffer a = put(tops), b = put(counts), c = put(lows);
  const std::vector<Reduction> list{{a.data(), 33, ElementKind::i8, Combine::max},
                                    {nullptr, 0, ElementKind::i32, Combine::sum},
                                    {b.data(), 1001, ElementKind::i64, Combine::sum},
                                    {c.data(), 5, ElementKind::f64, Combine::min}};
  const std::int64_t before = nccl->groups();
  over_nccl->reduce_all(device, list, lane);
  EXPECT_EQ(nccl->groups(), before + 1);
  EXPECT_EQ(get<std::int8_t>(a), expected<std::int8_t>(seed, size(), 33, Combine::max));
  EXPECT_EQ(get<std::int64_t>(b), expected<std::int64_t>(seed + 1, size(), 1001, Combine::sum));
  EXPECT_EQ(get<double>(c), expected<double>(seed + 2, size(), 5, Combine::min));
}

TEST_F(Nccl, ManyReductionsInARow_KeepTheirOrder) {
  make();
  const DeviceBuffer memory = put(std::vector<std::int64_t>{1, 2});
  std::int64_t factor = 1;
  for (int round = 0; round < 20; ++round, factor = (factor * size()) % 1000003) {
    device.submit(lane, [at = reinterpret_cast<std::int64_t*>(memory.data())] {
      at[0] %= 1000003;
      at[1] %= 1000003;
    });
    over_nccl->reduce(device, memory.data(), 2, ElementKind::i64, Combine::sum, lane);
  }
  const auto got = get<std::int64_t>(memory);
  EXPECT_EQ(got[0] % 1000003, factor);
  EXPECT_EQ(got[1] % 1000003, 2 * factor % 1000003);
}

TEST_F(Nccl, NothingAndWhatDependsOnOrder_AreTreatedAsElsewhere) {
  make();
  const std::int64_t before = nccl->operations();
  over_nccl->reduce(device, nullptr, 0, ElementKind::i64, Combine::sum, lane);
  EXPECT_EQ(nccl->operations(), before);
  const DeviceBuffer memory = put(std::vector<double>{1});
  EXPECT_THROW(over_nccl->reduce(device, memory.data(), 1, ElementKind::f64, Combine::sum, lane),
               std::invalid_argument);
  EXPECT_THROW(over_nccl->reduce(device, memory.data(), 1, ElementKind::binned, Combine::sum, lane),
               std::invalid_argument);
  EXPECT_EQ(sum_once(), Came::sum);
}

TEST_F(Nccl, AllElse_GoesOverTheOtherRanks) {
  make();
  EXPECT_EQ(over_nccl->rank(), rank());
  EXPECT_EQ(over_nccl->size(), size());
  std::vector<std::byte> word(3, static_cast<std::byte>(rank()));
  over_nccl->broadcast(word, size() - 1);
  EXPECT_EQ(word, std::vector<std::byte>(3, static_cast<std::byte>(size() - 1)));
  const auto all = over_nccl->gather({static_cast<std::byte>(rank())});
  EXPECT_EQ(all.size(), rank() == 0 ? static_cast<std::size_t>(size()) : 0u);
  if (rank() == 0) over_nccl->request_stop();
  EXPECT_TRUE(poll_until([](const Verdict& verdict) { return verdict.stop; }));
  EXPECT_TRUE(over_nccl->agree(std::nullopt, beat).ok);
}

TEST_F(Nccl, TheEnd_FinalizesAndDestroysOnce) {
  make();
  EXPECT_EQ(sum_once(), Came::sum);
  over_nccl.reset();
  EXPECT_EQ(nccl->connected(), 1);
  EXPECT_EQ(nccl->destroyed(), 1);
  EXPECT_EQ(nccl->aborted(), 0);
}

TEST_F(Nccl, AnEndThatNcclDoesNotFinish_IsAnAbort) {
  make({.finalize_hangs = true}, {.timeout = seconds(20), .abort_grace = milliseconds(100)});
  over_nccl.reset();
  EXPECT_EQ(nccl->destroyed(), 0);
  EXPECT_EQ(nccl->aborted(), 1);
  EXPECT_TRUE(comm().agree(std::nullopt, beat).ok);
}

TEST_F(Nccl, AnEndDuringAnException_IsAnAbort) {
  make_double();
  try {
    const auto one = make_nccl_communicator(comm(), device, {nccl->calls(), {}}, {.timeout = seconds(20)});
    throw std::runtime_error("elsewhere");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(nccl->aborted(), 1);
  EXPECT_EQ(nccl->destroyed(), 0);
}

TEST_F(Nccl, ARankThatConnectsLate_IsWaitedFor) {
  NcclFaults faults;
  if (rank() == size() - 1) faults.init_delay = milliseconds(150);
  make(faults);
  EXPECT_EQ(sum_once(), Came::sum);
}

/// NCCL's time begins when all have met.
TEST_F(Nccl, ARankThatCombinesLate_IsWaitedForBeyondTheTimeout) {
  make({}, {.timeout = milliseconds(1000)});
  if (rank() == size() - 1) {
    const auto until = std::chrono::steady_clock::now() + milliseconds(1500);
    while (std::chrono::steady_clock::now() < until) comm().poll(beat);
  }
  EXPECT_EQ(sum_once(), Came::sum) << said;
}

TEST_F(Nccl, MissingOrOldOrMixedNccl_IsSaidOnEveryRankAndNothingIsAnnounced) {
  const bool last = rank() == size() - 1;
  const auto expect_refused = [&](const NcclLibrary& library, const std::string& words) {
    try {
      make_nccl_communicator(comm(), device, library, {.timeout = seconds(20)});
      ADD_FAILURE() << "made: " << words;
    } catch (const PeerFailed&) {
      ADD_FAILURE() << "announced: " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::device);
      EXPECT_TRUE(!last || std::string(error.what()).find(words) != std::string::npos) << error.what();
    }
  };
  NcclLibrary library{make_double().calls(), {}};
  if (last) library = {std::nullopt, "its library cannot be opened"};
  expect_refused(library, "its library cannot be opened");
  expect_refused({make_double({.version = last ? 21303 : 22809}).calls(), {}}, "2.13.3, too old");
  if (size() > 1) expect_refused({make_double({.version = last ? 22703 : 22809}).calls(), {}}, "2.27.3 to 2.28.9");
  EXPECT_TRUE(comm().agree(std::nullopt, beat).ok);
}

TEST_F(Nccl, WhatFailsWhileConnecting_EndsAllRanks) {
  for (const int failing : {0, size() - 1}) {
    std::vector<NcclFaults> ways(3);
    ways[0].init_result = NcclDouble::system_error;
    ways[1].init_error = true;
    ways[2].unique_id_result = failing == 0 ? NcclDouble::system_error : 0;
    for (const NcclFaults& way : ways) {
      if (&way == &ways[2] && failing != 0) continue;
      EXPECT_THROW(make(rank() == failing ? way : NcclFaults{}), Error);
      over_nccl.reset();
      expect_agreed_failure("result", failing);
    }
  }
}

TEST_F(Nccl, ConnectingThatNeverEnds_EndsAllRanksInTime) {
  NcclFaults faults;
  faults.init_never = rank() == size() - 1;
  EXPECT_THROW(make(faults, {.timeout = milliseconds(300)}), Error);
  expect_agreed_failure("did not end within 0.3 s");
}

TEST_F(Nccl, ATrialSumThatIsWrongOnOneRank_IsSaidOnEveryRankAndNothingIsAnnounced) {
  NcclFaults faults;
  if (rank() == 0) faults.wrong_operation = 1;
  try {
    make(faults);
    ADD_FAILURE() << "made";
  } catch (const PeerFailed&) {
    ADD_FAILURE() << "announced";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("NCCL cannot be used: summing"), std::string::npos) << error.what();
  }
  EXPECT_EQ(nccl->aborted(), 1);
  EXPECT_TRUE(comm().agree(std::nullopt, beat).ok);
}

class NcclFailure : public Nccl {
 protected:
  /// The second operation, the first after the trial, fails on `failing`, and is tried by all.
  void fail(const NcclFaults& on_failing, int failing, const std::string& words, NcclTimes times) {
    make(rank() == failing ? on_failing : NcclFaults{}, times);
    const Came came = sum_once();
    if (rank() == failing) {
      EXPECT_EQ(came, Came::device_error) << said;
      EXPECT_NE(said.find(words), std::string::npos) << said;
    } else {
      EXPECT_EQ(came, Came::peer_failed) << said;
    }
    EXPECT_EQ(nccl->aborted(), 1);
    expect_agreed_failure(words, failing);
    EXPECT_EQ(sum_once(), Came::device_error) << "NCCL is not used again";
    std::int64_t one = 1;
    comm().reduce(backend, &one, 1, ElementKind::i64, Combine::sum, queue);
    EXPECT_EQ(one, size()) << "the ranks go on without it";
    over_nccl.reset();
    EXPECT_EQ(nccl->aborted(), 1);
    EXPECT_EQ(nccl->destroyed(), 0);
  }
};

TEST_F(NcclFailure, AnAsynchronousErrorOnOneRank_EndsAllAndIsNamedByIt) {
  for (const int failing : {0, size() - 1}) {
    fail({.failing_operation = 2}, failing, "result 6", {.timeout = seconds(20)});
  }
}

TEST_F(NcclFailure, ARefusedOperation_EndsAllAndClosesItsGroup) {
  for (const int failing : {0, size() - 1}) {
    fail({.refused_operation = 2}, failing, "ncclAllReduce failed: result 2", {.timeout = seconds(20)});
  }
}

TEST_F(NcclFailure, ASumThatNeverEnds_EndsAllAtTheTimeout) {
  NcclFaults faults;
  if (rank() == size() - 1) faults.endless_operation = 2;
  make(faults, {.timeout = milliseconds(300)});
  const Came came = sum_once();
  EXPECT_TRUE(came == Came::device_error || came == Came::peer_failed);
  EXPECT_EQ(nccl->aborted(), 1);
  expect_agreed_failure("did not end within 0.3 s");
}

TEST_F(NcclFailure, AFailureElsewhereDuringASum_BreaksItOff) {
  if (size() == 1) GTEST_SKIP() << "needs another rank";
  make({}, {.timeout = seconds(0)});
  // A failure must not meet ranks that are still connecting.
  ASSERT_TRUE(comm().agree(std::nullopt, beat).ok);
  if (rank() == 0) {
    // Rank 0 does not come to the sum at all.
    comm().announce({ExitCode::input, 17, "row 17 cannot be read"});
  } else {
    EXPECT_EQ(sum_once(), Came::peer_failed);
  }
  const Agreement agreement = comm().agree(std::nullopt, beat);
  EXPECT_EQ(agreement.code, ExitCode::input);
}

TEST_F(NcclFailure, WorkBeforeTheSumThatFails_IsThrownAsItIs) {
  make();
  ASSERT_TRUE(comm().agree(std::nullopt, beat).ok);
  if (rank() == 0) device.submit(lane, [] { throw Error(ExitCode::failed, "a kernel failed"); });
  EXPECT_EQ(sum_once(), rank() == 0 ? Came::other_error : Came::peer_failed);
  const Agreement agreement = comm().agree(std::nullopt, beat);
  EXPECT_EQ(agreement.code, ExitCode::failed);
  EXPECT_EQ(agreement.message, rank() == 0 ? "a kernel failed" : "");
}

TEST_F(NcclFailure, RanksThatReduceDifferentLists_AreToldInsteadOfHanging) {
  if (size() == 1) GTEST_SKIP() << "needs another rank";
  make();
  ASSERT_TRUE(comm().agree(std::nullopt, beat).ok);
  const DeviceBuffer memory = put(std::vector<std::int64_t>{1, 2});
  const std::int64_t operations = nccl->operations();
  // A rank that the others' word reaches early throws PeerFailed.
  EXPECT_ANY_THROW(over_nccl->reduce(device, memory.data(), rank() == 0 ? 1 : 2, ElementKind::i64, Combine::sum, lane));
  EXPECT_EQ(nccl->operations(), operations);
  const Agreement agreement = comm().agree(std::nullopt, beat);
  EXPECT_EQ(agreement.code, ExitCode::failed);
  EXPECT_EQ(agreement.rank == rank(), agreement.message == "internal error: ranks do not reduce the same");
}

}  // namespace
}  // namespace rowmill::testing
