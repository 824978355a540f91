#pragma once
// A CudaModule without CUDA: devices as a test wants them, the asynchronous host backend, host kernels, and a
// communicator that counts what goes through it.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "core/cuda_loader.hpp"
#include "kernels/ops.hpp"

namespace rowmill::test {

/// What the module's plain functions look at.
struct FakeCuda {
  std::vector<CudaDevice> devices;
  std::string devices_fail;        ///< not empty: devices() throws this
  bool backend_fails = false;      ///< make_backend throws
  bool nccl_fails = false;         ///< make_nccl_communicator throws
  int ordinal = -1;                ///< of the last backend
  std::int64_t memory_limit = -1;  ///< of the last backend
  std::atomic<int> probes{0}, backends{0}, communicators{0}, reductions{0};

  static FakeCuda& get() {
    static FakeCuda fake;
    return fake;
  }
  void reset() {
    devices.clear();
    devices_fail.clear();
    backend_fails = nccl_fails = false;
    ordinal = -1;
    memory_limit = -1;
    probes = backends = communicators = reductions = 0;
  }
};

inline CudaDevice fake_device(int ordinal, std::uint8_t uuid, std::string name = "NVIDIA Fake") {
  CudaDevice device;
  device.ordinal = ordinal;
  device.name = std::move(name);
  device.uuid[15] = uuid;
  device.memory = 1000;
  return device;
}

/// All but the bulk reductions is the other communicator's; these are counted.
class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(Communicator& ranks) : ranks_(ranks) {}
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  void reduce(Backend& backend, void* data, std::int64_t count, ElementKind kind, Combine how, Queue queue) override {
    ++FakeCuda::get().reductions;
    ranks_.reduce(backend, data, count, kind, how, queue);
  }
  void broadcast(std::vector<std::byte>& bytes, int root) override { ranks_.broadcast(bytes, root); }
  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& bytes) override {
    return ranks_.gather(bytes);
  }
  Verdict poll(const Heartbeat& mine) override { return ranks_.poll(mine); }
  void announce(const Failure& failure) override { ranks_.announce(failure); }
  void request_stop() override { ranks_.request_stop(); }
  Agreement agree(const std::optional<Failure>& mine, const Heartbeat& heartbeat) override {
    return ranks_.agree(mine, heartbeat);
  }

 private:
  Communicator& ranks_;
};

inline const CudaModule& fake_module() {
  static const CudaModule module = {
      "fake",
      [] {
        const FakeCuda& fake = FakeCuda::get();
        if (!fake.devices_fail.empty()) throw Error(ExitCode::device, fake.devices_fail);
        return fake.devices;
      },
      [](int ordinal, std::int64_t memory_limit) {
        FakeCuda& fake = FakeCuda::get();
        if (fake.backend_fails) throw Error(ExitCode::device, "cudaSetDevice: all devices are busy");
        fake.ordinal = ordinal;
        fake.memory_limit = memory_limit;
        ++fake.backends;
        return make_async_host_backend();
      },
      [](Backend& backend) { return make_host_ops(backend); },
      [](Communicator& ranks, Backend&, std::chrono::milliseconds) -> std::unique_ptr<Communicator> {
        if (FakeCuda::get().nccl_fails) throw Error(ExitCode::device, "libnccl.so.2 is not here");
        ++FakeCuda::get().communicators;
        return std::make_unique<CountingCommunicator>(ranks);
      }};
  return module;
}

inline CudaProbe probe_fake() {
  ++FakeCuda::get().probes;
  return {&fake_module(), {}};
}

}  // namespace rowmill::test
