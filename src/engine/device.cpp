#include "engine/device.hpp"

namespace rowmill {

Device choose_device(const DeviceWish& wish, World&) {
  Device device;
  device.backend = wish.backend == "host-async" ? make_async_host_backend() : make_host_backend();
  device.ops = make_host_ops(*device.backend);
  return device;
}

}  // namespace rowmill
