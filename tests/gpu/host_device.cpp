#include "tests/gpu/test_device.hpp"

namespace rowmill::test {

TestDevice open_test_device() {
  TestDevice device;
  device.backend = make_async_host_backend();
  device.ops = make_host_ops(*device.backend);
  device.backend_name = "host-async";
  return device;
}

}  // namespace rowmill::test
