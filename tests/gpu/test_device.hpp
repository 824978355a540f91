#pragma once
// The device that these tests run on. Two programs are made of them: on the CUDA module (skipped where it finds no
// device), and on the asynchronous host backend, which shows that the tests themselves are right.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "kernels/ops.hpp"

namespace rowmill::test {

/// Members are destroyed in the order that their uses demand.
struct TestDevice {
  std::unique_ptr<Backend> backend;  ///< null: there is no such device
  std::unique_ptr<Ops> ops;
  std::string backend_name;  ///< "cuda" or "host-async": what the backend must call itself
  std::string why_not;
};

TestDevice open_test_device();

/// An array in device memory.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(Backend& backend, Queue queue, const std::vector<T>& values)
      : backend_(backend), queue_(queue), count_(values.size()), memory_(backend, bytes() + 64, queue) {
    if (bytes() > 0) backend.copy(memory_.data(), values.data(), bytes(), queue);
    backend.wait_host(backend.record(queue));
  }
  /// Filled with a value that no result is.
  DeviceArray(Backend& backend, Queue queue, std::int64_t count)
      : DeviceArray(backend, queue, std::vector<T>(static_cast<std::size_t>(count), T(-77))) {}

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::vector<T> fetch() const {
    std::vector<T> values(count_);
    if (bytes() > 0) backend_.copy(values.data(), memory_.data(), bytes(), queue_);
    backend_.wait_host(backend_.record(queue_));
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }

  Backend& backend_;
  Queue queue_;
  std::size_t count_;
  DeviceBuffer memory_;
};

/// A block's memory on the device.
class DeviceBlock {
 public:
  /// `misaligned`: elements begin one element behind a multiple of 64 bytes.
  DeviceBlock(Backend& backend, Queue queue, const Block& block, bool misaligned = false);
  const Block& block() const { return block_; }

 private:
  std::vector<DeviceBuffer> buffers_;
  Block block_;
};

class OnTestDevice : public testing::Test {
 protected:
  static void SetUpTestSuite() { device_ = new TestDevice(open_test_device()); }
  static void TearDownTestSuite() {
    delete device_;
    device_ = nullptr;
  }
  void SetUp() override;

  Backend& backend() const { return *device_->backend; }
  Ops& ops() const { return *device_->ops; }
  void prepare(const Block& block, std::optional<Precision> product = std::nullopt) const;

  static inline TestDevice* device_ = nullptr;
  Queue queue_;
};

}  // namespace rowmill::test
