#include "core/backend.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <numeric>
#include <ostream>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/async_host_backend.hpp"
#include "core/error.hpp"

namespace rowmill {
namespace {

using namespace std::chrono_literals;

struct Kind {
  const char* name;
  std::unique_ptr<Backend> (*make)();
  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

/// What every host backend promises.
class HostBackends : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(HostBackends, CopyAndClear_WorkInTheOrderOfTheQueue) {
  const Queue queue = backend_->make_queue();
  std::vector<int> values(1000), back(1000, -1);
  std::iota(values.begin(), values.end(), 1);
  const std::size_t bytes = values.size() * sizeof(int);
  auto* staging = static_cast<int*>(backend_->allocate_staging(bytes));
  std::memcpy(staging, values.data(), bytes);
  DeviceBuffer device(*backend_, bytes, queue);
  backend_->copy(device.data(), staging, bytes, queue);
  backend_->clear(device.data() + 400, 40, queue);
  backend_->copy(staging, device.data(), bytes, queue);
  backend_->copy(back.data(), staging, bytes, queue);
  backend_->wait_host(backend_->record(queue));
  std::fill(values.begin() + 100, values.begin() + 110, 0);
  EXPECT_EQ(back, values);
  backend_->release_staging(staging, bytes);
}

TEST_P(HostBackends, Submit_FromOneThread_RunsInOrder) {
  const Queue queue = backend_->make_queue();
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) backend_->submit(queue, [&order, i] { order.push_back(i); });
  backend_->wait_host(backend_->record(queue));
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(HostBackends, EmptyEvent_IsReachedAndWaitedForAtOnce) {
  const Queue queue = backend_->make_queue();
  EXPECT_TRUE(backend_->reached({}));
  backend_->wait(queue, {});
  backend_->wait_host({});
}

TEST_P(HostBackends, Queues_AreDifferent) {
  const Queue a = backend_->make_queue(), b = backend_->make_queue();
  EXPECT_NE(a.id, b.id);
}

TEST_P(HostBackends, ChainOfWaits_CarriesAValueThroughQueues) {
  std::vector<Queue> queues;
  for (int i = 0; i < 5; ++i) queues.push_back(backend_->make_queue());
  std::int64_t value = 0;  // no atomic: the waits are what makes this safe
  Event last;
  for (int i = 0; i < 100; ++i) {
    const Queue queue = queues[static_cast<std::size_t>(i) % 5];
    backend_->wait(queue, last);
    backend_->submit(queue, [&value, i] { value = 3 * value % 1000003 + i; });
    last = backend_->record(queue);
  }
  backend_->wait_host(last);
  std::int64_t expected = 0;
  for (int i = 0; i < 100; ++i) expected = 3 * expected % 1000003 + i;
  EXPECT_EQ(value, expected);
}

TEST_P(HostBackends, MemoryUse_CountsWhatIsHeldAndTheMost) {
  const Queue queue = backend_->make_queue();
  {
    const DeviceBuffer buffer(*backend_, 4 << 20, queue);
    EXPECT_GE(backend_->device_memory().current, 4 << 20);
  }
  backend_->wait_host(backend_->record(queue));
  EXPECT_EQ(backend_->device_memory().current, 0);
  EXPECT_GE(backend_->device_memory().high_water, 4 << 20);
  void* staging = backend_->allocate_staging(2 << 20);
  EXPECT_GE(backend_->staging_memory().current, 2 << 20);
  backend_->release_staging(staging, 2 << 20);
  EXPECT_EQ(backend_->staging_memory().current, 0);
}

TEST_P(HostBackends, Allocate_OfMoreThanThereIs_ThrowsDevice) {
  const Queue queue = backend_->make_queue();
  try {
    backend_->allocate(std::size_t{1} << 62, queue);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::device);
  }
}

TEST_P(HostBackends, DeviceBuffer_Moved_IsReleasedOnce) {
  const Queue queue = backend_->make_queue();
  {
    DeviceBuffer first(*backend_, 1000, queue);
    const std::byte* data = first.data();
    DeviceBuffer second(std::move(first));
    DeviceBuffer third;
    EXPECT_EQ(third.data(), nullptr);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.size(), 1000u);
  }
  backend_->wait_host(backend_->record(queue));
  EXPECT_EQ(backend_->device_memory().current, 0);
}

INSTANTIATE_TEST_SUITE_P(All, HostBackends,
                         testing::Values(Kind{"inline", &make_host_backend},
                                         Kind{"async", [] { return make_async_host_backend(); }}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(HostBackend, Submit_OfWorkThatThrows_ThrowsAtOnce) {
  const auto backend = make_host_backend();
  EXPECT_TRUE(backend->unified());
  EXPECT_EQ(backend->name(), "host");
  EXPECT_THROW(backend->submit(backend->make_queue(), [] { throw std::runtime_error("no"); }), std::runtime_error);
}

/// A queue that is held up until `open`.
struct Gate {
  std::promise<void> opened;
  void hold(Backend& backend, Queue queue) {
    backend.submit(queue, [future = opened.get_future().share()] { future.wait(); });
  }
  void open() { opened.set_value(); }
};

TEST(AsyncHostBackend, Event_BehindWorkThatIsHeldUp_IsNotReachedUntilItIsDone) {
  const auto backend = make_async_host_backend();
  EXPECT_FALSE(backend->unified());
  EXPECT_EQ(backend->name(), "host-async");
  const Queue queue = backend->make_queue();
  const Event before = backend->record(queue);
  Gate gate;
  gate.hold(*backend, queue);
  const Event after = backend->record(queue);
  backend->wait_host(before);
  EXPECT_TRUE(backend->reached(before));
  EXPECT_FALSE(backend->reached(after));
  gate.open();
  backend->wait_host(after);
  EXPECT_TRUE(backend->reached(after));
}

TEST(AsyncHostBackend, LongestWait_IsThatOfWhoWaits) {
  const auto backend = make_async_host_backend();
  const Queue queue = backend->make_queue();
  Gate gate;
  gate.hold(*backend, queue);
  const Event after = backend->record(queue);
  EXPECT_EQ(backend->longest_wait(), 0s);
  std::thread waiter([&] { backend->wait_host(after); });
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (backend->longest_wait() < 5ms && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_GE(backend->longest_wait(), 5ms);
  gate.open();
  waiter.join();
  EXPECT_EQ(backend->longest_wait(), 0s);
}

TEST(AsyncHostBackend, Wait_OnAnotherQueue_HoldsThatQueueAndNotTheHost) {
  const auto backend = make_async_host_backend();
  const Queue first = backend->make_queue(), second = backend->make_queue(), third = backend->make_queue();
  Gate gate;
  gate.hold(*backend, first);
  int value = 0;
  backend->submit(first, [&value] { value = 7; });
  backend->wait(second, backend->record(first));
  int seen = 0;
  backend->submit(second, [&] { seen = value; });
  const Event done = backend->record(second);
  backend->wait_host(backend->record(third));  // a queue that waits for nothing goes on
  EXPECT_FALSE(backend->reached(done));
  gate.open();
  backend->wait_host(done);
  EXPECT_EQ(seen, 7);
}

TEST(AsyncHostBackend, Failure_IsThrownByTheNextWaitHostOnItsQueueAndThenForgiven) {
  const auto backend = make_async_host_backend();
  const Queue queue = backend->make_queue(), other = backend->make_queue();
  const Event before = backend->record(queue);
  backend->submit(queue, [] { throw Error(ExitCode::input, "bad row", 17); });
  std::atomic<bool> ran{false};
  backend->submit(queue, [&ran] { ran = true; });
  const Event after = backend->record(queue);
  backend->wait_host(before);
  backend->wait_host(backend->record(other));
  try {
    backend->wait_host(after);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.row(), 17);
  }
  EXPECT_TRUE(backend->reached(after));
  EXPECT_FALSE(ran);
  backend->submit(queue, [&ran] { ran = true; });
  EXPECT_NO_THROW(backend->wait_host(backend->record(queue)));
  EXPECT_TRUE(ran);
}

TEST(AsyncHostBackend, Failure_OfWhatAQueueWaitsFor_FailsThatQueueToo) {
  const auto backend = make_async_host_backend();
  const Queue first = backend->make_queue(), second = backend->make_queue();
  backend->submit(first, [] { throw std::runtime_error("first"); });
  backend->wait(second, backend->record(first));
  std::atomic<bool> ran{false};
  backend->submit(second, [&ran] { ran = true; });
  EXPECT_THROW(backend->wait_host(backend->record(second)), std::runtime_error);
  EXPECT_FALSE(ran);
  EXPECT_THROW(backend->wait_host(backend->record(first)), std::runtime_error);
}

TEST(AsyncHostBackend, Destructor_DoesAllWorkThatWasPut) {
  std::atomic<int> done{0};
  Event last;
  {
    const auto backend = make_async_host_backend();
    const Queue first = backend->make_queue(), second = backend->make_queue();
    for (int i = 0; i < 50; ++i) {
      backend->submit(first, [&done] {
        std::this_thread::sleep_for(100us);
        ++done;
      });
      backend->wait(second, backend->record(first));
      backend->submit(second, [&done] { ++done; });
    }
    last = backend->record(second);
  }
  EXPECT_EQ(done, 100);
}

TEST(AsyncHostBackend, Release_GivesMemoryBackOnlyWhenItsQueueIsThere) {
  const auto backend = make_async_host_backend();
  const Queue queue = backend->make_queue(), other = backend->make_queue();
  void* memory = backend->allocate(1000, queue);
  Gate gate;
  gate.hold(*backend, queue);
  backend->release(memory, 1000, queue);
  void* meanwhile = backend->allocate(1000, other);
  EXPECT_NE(meanwhile, memory);
  gate.open();
  backend->wait_host(backend->record(queue));
  void* again = backend->allocate(1000, other);
  EXPECT_EQ(again, memory);
  backend->release(again, 1000, other);
  backend->release(meanwhile, 1000, other);
}

TEST(AsyncHostBackend, FailingAllocation_IsTheNth) {
  const auto backend = make_async_host_backend({.failing_allocation = 3});
  const Queue queue = backend->make_queue();
  for (int n = 1; n <= 5; ++n) {
    if (n == 3) {
      EXPECT_THROW(backend->allocate(64, queue), Error);
    } else {
      backend->release(backend->allocate(64, queue), 64, queue);
    }
  }
}

TEST(AsyncHostBackend, DeviceBytes_AreALimitThatReleaseGivesBack) {
  const auto backend = make_async_host_backend({.device_bytes = 1000});
  const Queue queue = backend->make_queue();
  void* memory = backend->allocate(600, queue);
  EXPECT_THROW(backend->allocate(401, queue), Error);
  backend->release(backend->allocate(400, queue), 400, queue);
  backend->release(memory, 600, queue);
  backend->wait_host(backend->record(queue));
  memory = backend->allocate(1000, queue);
  backend->release(memory, 1000, queue);
}

TEST(AsyncHostBackend, CopyDelays_DoNotChangeWhatIsCopied) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto backend = make_async_host_backend({.max_copy_delay_us = 200, .seed = seed});
  const Queue first = backend->make_queue(), second = backend->make_queue();
  std::vector<std::vector<int>> values(20, std::vector<int>(97));
  for (std::size_t i = 1; i < values.size(); ++i) {
    for (int& v : values[i]) v = -1;
  }
  std::iota(values[0].begin(), values[0].end(), 5);
  Event last;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Queue queue = i % 2 == 0 ? first : second;
    backend->wait(queue, last);
    backend->copy(values[i].data(), values[i - 1].data(), 97 * sizeof(int), queue);
    last = backend->record(queue);
  }
  backend->wait_host(last);
  EXPECT_EQ(values.back(), values.front());
}

}  // namespace
}  // namespace rowmill
