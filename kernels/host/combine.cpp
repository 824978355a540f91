#include <algorithm>

#include "kernels/host/kernels.hpp"

namespace rowmill::host {

namespace {

template <typename T>
void keep_least(T* acc, const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) acc[i] = std::min(acc[i], values[i]);
}

template <typename T>
void keep_greatest(T* acc, const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) acc[i] = std::max(acc[i], values[i]);
}

}  // namespace

void add(std::int64_t* acc, const std::int64_t* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) acc[i] += values[i];
}

void keep_min(double* acc, const double* values, std::int64_t count) {
  keep_least(acc, values, count);
}

void keep_max(double* acc, const double* values, std::int64_t count) {
  keep_greatest(acc, values, count);
}

void keep_min(std::int64_t* acc, const std::int64_t* values, std::int64_t count) {
  keep_least(acc, values, count);
}

void keep_max(std::int64_t* acc, const std::int64_t* values, std::int64_t count) {
  keep_greatest(acc, values, count);
}

}  // namespace rowmill::host
