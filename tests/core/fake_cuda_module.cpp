// What looks like librowmill_cuda.so to the loader; FAKE_VERSION says which build it claims to be of.
#include "core/cuda_module.hpp"
#include "rowmill_version.hpp"

#ifndef FAKE_VERSION
#define FAKE_VERSION rowmill::version
#endif

extern "C" const rowmill::CudaModule* rowmill_cuda_module() {
  static const rowmill::CudaModule module = {FAKE_VERSION, nullptr, nullptr, nullptr, nullptr};
  return &module;
}
