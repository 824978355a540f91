#include <cstring>
#include <limits>

#include "tests/comm/comm_fixture.hpp"
#include "tests/comm/reduce_data.hpp"

namespace rowmill::testing {
namespace {

constexpr std::int64_t kPiece = 1 << 20;

class Reduce : public CommTest {
 protected:
  template <typename T>
  void check(ElementKind kind, Combine how, std::int64_t count, Backend& where) {
    const Queue lane = where.make_queue();
    const std::vector<T> mine = data_of<T>(seed, rank(), count);
    const std::size_t bytes = mine.size() * sizeof(T);
    DeviceBufferGuard device(where, bytes + 1, lane);
    // Queued, not done: the reduction must wait for it.
    where.copy(device.data, mine.data(), bytes, lane);
    comm().reduce(where, device.data, count, kind, how, lane);
    std::vector<T> got(mine.size());
    std::memcpy(got.data(), device.data, bytes);  // complete on return
    EXPECT_TRUE(got == expected<T>(seed, size(), count, how)) << "seed " << seed << " kind " << static_cast<int>(kind)
                                                              << " how " << static_cast<int>(how) << " count " << count;
    EXPECT_EQ(static_cast<std::byte*>(device.data)[bytes], std::byte{0xa5}) << "written past the end";
  }

  struct DeviceBufferGuard {
    DeviceBufferGuard(Backend& owner, std::size_t bytes, Queue lane)
        : backend_of(owner), size_of_it(bytes), queue_of(lane), data(owner.allocate(bytes, lane)) {
      std::memset(data, 0xa5, bytes);
    }
    DeviceBufferGuard(const DeviceBufferGuard&) = delete;
    ~DeviceBufferGuard() { backend_of.release(data, size_of_it, queue_of); }
    Backend& backend_of;
    std::size_t size_of_it;
    Queue queue_of;
    void* data;
  };

  DeferringBackend device_backend{false};
};

TEST_F(Reduce, IntegersOfAllKinds_BySumMinMax_AreExactAtOddCounts) {
  for (const Combine how : {Combine::sum, Combine::min, Combine::max}) {
    for (const std::int64_t count : {1, 7, 1000, 4097}) {
      check<std::int8_t>(ElementKind::i8, how, count, backend);
      check<std::int32_t>(ElementKind::i32, how, count, backend);
      check<std::int64_t>(ElementKind::i64, how, count, backend);
    }
  }
}

TEST_F(Reduce, Float64_ByMinMax_IsExactAtOddCounts) {
  for (const Combine how : {Combine::min, Combine::max}) {
    for (const std::int64_t count : {1, 7, 1001}) check<double>(ElementKind::f64, how, count, backend);
  }
}

TEST_F(Reduce, OfInfinities_KeepsThem) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values{rank() == 0 ? inf : 1.0, rank() == size() - 1 ? -inf : 2.0};
  comm().reduce(backend, values.data(), 2, ElementKind::f64, Combine::max, queue);
  EXPECT_EQ(values[0], inf);
  EXPECT_EQ(values[1], size() == 1 ? -inf : 2.0);
}

TEST_F(Reduce, OfCountsAroundAPiece_LosesNoElement) {
  for (const std::int64_t count : {kPiece - 1, kPiece, kPiece + 1, 2 * kPiece + 3}) {
    check<std::int8_t>(ElementKind::i8, Combine::sum, count, backend);
  }
  check<std::int64_t>(ElementKind::i64, Combine::sum, kPiece + 1, backend);
}

TEST_F(Reduce, OfDeviceMemory_GoesThroughStagingAndGivesItBack) {
  for (const std::int64_t count : {std::int64_t{5}, kPiece + 1}) {
    check<std::int32_t>(ElementKind::i32, Combine::sum, count, device_backend);
  }
  EXPECT_EQ(device_backend.staging_memory().current, 0);
  EXPECT_EQ(device_backend.staging_memory().high_water > 0, size() > 1);
}

TEST_F(Reduce, OfNothing_Works) {
  comm().reduce(backend, nullptr, 0, ElementKind::i64, Combine::sum, queue);
  std::int64_t one = 1;
  comm().reduce(backend, &one, 1, ElementKind::i64, Combine::sum, queue);
  EXPECT_EQ(one, size());
}

TEST_F(Reduce, OfWhatDependsOnOrder_IsRefused) {
  double value = 1;
  EXPECT_THROW(comm().reduce(backend, &value, 1, ElementKind::f64, Combine::sum, queue), std::invalid_argument);
  EXPECT_THROW(comm().reduce(backend, &value, 1, ElementKind::binned, Combine::sum, queue), std::invalid_argument);
  EXPECT_THROW(comm().reduce(backend, &value, 1, ElementKind::i64, Combine::none, queue), std::invalid_argument);
  EXPECT_THROW(comm().reduce(backend, &value, -1, ElementKind::i64, Combine::sum, queue), std::invalid_argument);
}

}  // namespace
}  // namespace rowmill::testing
