#pragma once
// Which backend and which communicator all ranks take, from what each found: a pure function.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rowmill {

struct DeviceWish {
  std::string backend = "auto";    ///< "auto", "host", "cuda"; tests: "host-async"
  std::string comm = "auto";       ///< "auto", "nccl", "mpi"
  std::int64_t device_memory = 0;  ///< --device-memory; 0: nine tenths of what is free
  std::chrono::milliseconds timeout{0};
};

/// What one rank found.
struct DeviceFacts {
  std::string why_not;  ///< a clause; empty: this rank has a GPU, and the rest is set
  std::string name;     ///< "NVIDIA H200"
  std::string uuid;     ///< as hexadecimal digits

  std::vector<std::byte> serialise() const;
  static DeviceFacts deserialise(std::span<const std::byte> bytes);
};

/// The same on every rank.
struct DeviceChoice {
  bool cuda = false, nccl = false;
  std::string why_host;      ///< why auto does not take CUDA; empty if it does or was not asked to
  std::string warning;       ///< to be said once
  std::string error;         ///< not empty: what was asked for cannot be had
  std::vector<int> sharing;  ///< for each rank, how many ranks its GPU has

  std::vector<std::byte> serialise() const;
  static DeviceChoice deserialise(std::span<const std::byte> bytes);
};

/// Is a GPU looked for at all?
bool wants_cuda(const DeviceWish& wish);

/// `ranks`: of all ranks, in order. CUDA is taken where every rank has a GPU, all of one kind (the bits of results
/// depend on the kind); NCCL where there are several ranks, each with a GPU of its own, or where it was asked for.
DeviceChoice choose_for_all(const DeviceWish& wish, const std::vector<DeviceFacts>& ranks);

}  // namespace rowmill
