// Sums of memory that only a device reaches, over an MPI that says that it takes such memory, and over one that does
// not. Hosts stand in for the device: their MPI reads the memory of an asynchronous host backend as any other.
#include <list>
#include <vector>

#include "comm/mpi_communicator.hpp"
#include "tests/comm/comm_fixture.hpp"
#include "tests/comm/reduce_data.hpp"

namespace rowmill::testing {
namespace {

constexpr std::int64_t kPiece = 1 << 20;

class DeviceMemory : public CommTest {
 protected:
  std::unique_ptr<Communicator> make(bool cuda_aware) {
    // MPI's own waiting starts nobody's messages: first all are to have left the fixture's agreement
    std::int64_t here = 1;
    comm().reduce(backend, &here, 1, ElementKind::i64, Combine::sum, queue);
    return make_mpi_communicator(std::chrono::seconds(20), cuda_aware).communicator;
  }

  /// What reduce makes of random data in device memory.
  template <typename T>
  std::vector<T> reduced(Communicator& over, ElementKind kind, Combine how, std::int64_t count) {
    const Queue lane = device->make_queue();
    const std::vector<T> mine = data_of<T>(seed, rank(), count);
    const std::size_t bytes = mine.size() * sizeof(T);
    const DeviceBuffer memory(*device, bytes, lane);
    const auto* from = reinterpret_cast<const std::byte*>(mine.data());
    sent_.emplace_back(from, from + bytes);
    device->copy(memory.data(), sent_.back().data(), bytes, lane);  // queued: the reduction must wait for it
    over.reduce(*device, memory.data(), count, kind, how, lane);
    std::vector<T> got(mine.size());
    std::memcpy(got.data(), memory.data(), bytes);  // complete on return
    return got;
  }

  template <typename T>
  void expect_exact(Communicator& over, ElementKind kind, Combine how, std::int64_t count) {
    EXPECT_TRUE(reduced<T>(over, kind, how, count) == expected<T>(seed, size(), count, how))
        << "seed " << seed << " kind " << static_cast<int>(kind) << " how " << static_cast<int>(how) << " count "
        << count;
  }

  std::list<std::vector<std::byte>> sent_;  ///< outlives what is queued, also where a reduction is given up
  std::unique_ptr<Backend> device = make_async_host_backend();
};

TEST_F(DeviceMemory, GivenToMpiOrStaged_GivesTheSameBits) {
  for (const bool given : {true, false}) {
    const auto over = make(given);
    EXPECT_EQ(over->reduces_on_device(), given);
    for (const Combine how : {Combine::sum, Combine::min, Combine::max}) {
      expect_exact<std::int8_t>(*over, ElementKind::i8, how, 4097);
      expect_exact<std::int32_t>(*over, ElementKind::i32, how, 7);
      expect_exact<std::int64_t>(*over, ElementKind::i64, how, 1001);
    }
    expect_exact<double>(*over, ElementKind::f64, Combine::min, 1001);
    expect_exact<std::int8_t>(*over, ElementKind::i8, Combine::sum, kPiece + 3);
    EXPECT_EQ(device->staging_memory().high_water == 0, given) << "staging memory is for what MPI does not take";
  }
}

TEST_F(DeviceMemory, WhereOneMpiDoesNotTakeIt_IsStagedOnAllRanks) {
  const auto over = make(rank() != size() - 1);
  EXPECT_FALSE(over->reduces_on_device());
  expect_exact<std::int64_t>(*over, ElementKind::i64, Combine::sum, 1000);
  EXPECT_GT(device->staging_memory().high_water, 0);
}

/// The call that sums cannot be left: ranks must not go into it before all have come.
TEST_F(DeviceMemory, WhileAnotherRankFails_IsNotWaitedFor) {
  if (size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  const auto over = make(true);
  std::optional<Failure> mine;
  if (rank() == size() - 1) {
    mine = Failure{ExitCode::input, std::nullopt, "the file is gone"};
    over->announce(*mine);
  } else {
    EXPECT_THROW(reduced<std::int64_t>(*over, ElementKind::i64, Combine::sum, 1000), PeerFailed);
  }
  const Agreement agreement = over->agree(mine, beat);
  EXPECT_EQ(agreement.code, ExitCode::input);
  EXPECT_EQ(agreement.rank, size() - 1);
  expect_exact<std::int64_t>(*over, ElementKind::i64, Combine::sum, 1000);
}

}  // namespace
}  // namespace rowmill::testing
