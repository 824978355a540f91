#include "core/pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rowmill {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void* take_from_system(std::size_t bytes) {
  const bool huge = bytes >= kHugePage;
  void* memory = std::aligned_alloc(huge ? kHugePage : kLine, bytes);
  // Only advice: where huge pages are off, small ones serve.
  if (huge && memory != nullptr) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

MemoryPool::MemoryPool() : MemoryPool({take_from_system, [](void* memory, std::size_t) { std::free(memory); }}) {}

std::size_t MemoryPool::rounded(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return bytes;  // cannot be had: allocate says so
  if (bytes >= kHugePage) return round_up(bytes, kHugePage);
  return round_up(std::max(bytes, kLine), bytes > kPage ? kPage : kLine);
}

MemoryPool::~MemoryPool() {
  trim();
}

void MemoryPool::trim() noexcept {
  const std::scoped_lock lock(mutex_);
  for (auto& [bytes, buffers] : free_) {
    for (void* memory : buffers) source_.give_back(memory, bytes);
    buffers.clear();
  }
}

void* MemoryPool::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::scoped_lock lock(mutex_);
  auto& buffers = free_[size];
  void* memory = nullptr;
  if (!buffers.empty()) {
    memory = buffers.back();
    buffers.pop_back();
  } else {
    memory = size % kLine == 0 ? source_.take(size) : nullptr;
    if (memory == nullptr) {
      throw Error(ExitCode::failed, "out of memory: " + format_size(static_cast<std::int64_t>(bytes)) +
                                        " asked for, pool holds " + format_size(use_.current) +
                                        ": give less --memory or smaller --block-rows");
    }
    ++system_allocations_;
  }
  use_.current += static_cast<std::int64_t>(size);
  use_.high_water = std::max(use_.high_water, use_.current);
  return memory;
}

void MemoryPool::release(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  const std::size_t size = rounded(bytes);
  const std::scoped_lock lock(mutex_);
  use_.current -= static_cast<std::int64_t>(size);
  free_[size].push_back(memory);
}

MemoryUse MemoryPool::use() const {
  const std::scoped_lock lock(mutex_);
  return use_;
}

std::int64_t MemoryPool::system_allocations() const {
  const std::scoped_lock lock(mutex_);
  return system_allocations_;
}

}  // namespace rowmill
