#include <dlfcn.h>

#include "core/cuda_module.hpp"
#include "tests/gpu/test_device.hpp"

namespace rowmill::test {

namespace {

/// As the program opens it. The module must be there wherever these tests are built; a device need not.
const CudaModule& module() {
  void* const library = dlopen(ROWMILL_BIN_DIR "/librowmill_cuda.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  using Function = const CudaModule* (*)();
  const auto function = reinterpret_cast<Function>(dlsym(library, cuda_module_symbol));
  if (function == nullptr) throw std::runtime_error(dlerror());
  return *function();
}

}  // namespace

TestDevice open_test_device() {
  TestDevice device;
  device.backend_name = "cuda";
  const CudaModule& cuda = module();
  try {
    if (cuda.devices().empty()) {
      device.why_not = "no CUDA device";
      return device;
    }
  } catch (const std::exception& error) {
    device.why_not = std::string("no CUDA device: ") + error.what();
    return device;
  }
  // from here on a failure is one
  device.backend = cuda.make_backend(0, 0);
  device.ops = cuda.make_ops(*device.backend);
  return device;
}

}  // namespace rowmill::test
