#include <cctype>
#include <fstream>
#include <string>

#include "kernels/host/simd.hpp"
#include "kernels/ops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/device_name.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {
namespace {

const char* target_name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace
}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowmill {

namespace host {
HWY_EXPORT(target_name);
}  // namespace host

namespace {

/// "model name" of the first processor, runs of blanks made one.
std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    std::string model;
    for (std::size_t i = line.find(':') + 1; i < line.size(); ++i) {
      const bool blank = std::isspace(static_cast<unsigned char>(line[i])) != 0;
      if (!blank) {
        model += line[i];
      } else if (!model.empty() && model.back() != ' ') {
        model += ' ';
      }
    }
    return model;
  }
  return "unknown processor";
}

}  // namespace

std::string host_device_name() {
  using namespace host;
  return processor_model() + ", rowmill kernels " + HWY_DYNAMIC_DISPATCH(target_name)();
}

}  // namespace rowmill
#endif
