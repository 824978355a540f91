#include "engine/device.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "engine/watch.hpp"

namespace rowmill {

namespace {

using Stage = Heartbeat::Stage;

/// What this rank may use.
struct Found {
  const CudaModule* module = nullptr;
  CudaDevice device;
  DeviceFacts facts;
};

std::string hexadecimal(const std::array<std::uint8_t, 16>& bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

Found look_for_device(int local_rank, const CudaProber& probe) {
  Found found;
  const CudaProbe answer = probe();
  if (answer.module == nullptr) {
    found.facts.why_not = answer.why_not;
    return found;
  }
  try {
    const std::vector<CudaDevice> devices = answer.module->devices();
    if (devices.empty()) {
      found.facts.why_not = cuda_refusal(100);
      return found;
    }
    found.module = answer.module;
    found.device = devices[static_cast<std::size_t>(local_rank) % devices.size()];
    found.facts = {{}, found.device.name, hexadecimal(found.device.uuid)};
  } catch (const Error& error) {
    found.facts.why_not = error.what();
  }
  return found;
}

DeviceChoice agree_on_choice(const DeviceWish& wish, const DeviceFacts& mine, Communicator& ranks) {
  const auto all = ranks.gather(mine.serialise());
  std::vector<std::byte> bytes;
  if (ranks.rank() == 0) {
    std::vector<DeviceFacts> facts;
    for (const auto& of_rank : all) facts.push_back(DeviceFacts::deserialise(of_rank));
    bytes = choose_for_all(wish, facts).serialise();
  }
  ranks.broadcast(bytes, 0);
  return DeviceChoice::deserialise(bytes);
}

/// Ranks on one GPU share its memory evenly: each would take nine tenths of it otherwise.
std::int64_t memory_limit(const DeviceWish& wish, const CudaDevice& device, int sharing) {
  if (wish.device_memory > 0 || sharing <= 1) return wish.device_memory;
  return device.memory / 10 * 8 / sharing;
}

/// Collective. Where NCCL itself cannot be used (all ranks find that out together), "auto" goes on without it.
void connect(Device& device, const CudaModule& module, const DeviceWish& wish, Communicator& ranks) {
  try {
    device.nccl = module.make_nccl_communicator(ranks, *device.backend, wish.timeout);
  } catch (const PeerFailed&) {
    throw;
  } catch (const Error& error) {
    if (wish.comm == "nccl") throw;
    device.warning = std::string(error.what()) + "; sums travel by MPI instead";
  }
}

}  // namespace

Device choose_device(const DeviceWish& wish, World& world, const CudaProber& probe) {
  Communicator& ranks = world.communicator();
  Found found;
  DeviceChoice choice;
  if (wants_cuda(wish)) {
    // starting a driver of many GPUs takes seconds
    found = with_heartbeats(ranks, {Stage::starting}, [&] { return look_for_device(world.local_rank(), probe); });
    choice = agree_on_choice(wish, found.facts, ranks);
  } else {
    choice = choose_for_all(wish, {});
  }
  if (!choice.error.empty()) throw Error(ExitCode::device, choice.error);
  Device device;
  device.why_host = choice.why_host;
  device.warning = choice.warning;
  if (!choice.cuda) {
    device.backend = wish.backend == "host-async" ? make_async_host_backend() : make_host_backend();
    device.ops = make_host_ops(*device.backend);
    return device;
  }
  const int sharing = choice.sharing.at(static_cast<std::size_t>(world.rank()));
  with_heartbeats(ranks, {Stage::starting}, [&] {
    device.backend = found.module->make_backend(found.device.ordinal, memory_limit(wish, found.device, sharing));
    device.ops = found.module->make_ops(*device.backend);
  });
  if (choice.nccl) connect(device, *found.module, wish, ranks);
  return device;
}

}  // namespace rowmill
