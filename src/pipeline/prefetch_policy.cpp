#include "pipeline/prefetch_policy.hpp"

#include <sys/resource.h>

namespace rowmill {

std::int64_t voluntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace rowmill
