#pragma once
// Pooled memory, reused, with counts and high-water marks. First touch of memory is dear: nothing is given back to the
// system before the pool dies or is trimmed.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/backend.hpp"

namespace rowmill {

/// Where a pool's memory comes from. Sizes are as the pool rounded them; both get the same one.
struct MemorySource {
  std::function<void*(std::size_t bytes)> take;  ///< null where there is none; may throw
  std::function<void(void* memory, std::size_t bytes)> give_back;
};

/// Thread safe. Buffers of 2 MiB and more are 2 MiB aligned and ask for huge pages; smaller ones are 64-byte aligned.
class MemoryPool {
 public:
  MemoryPool();
  explicit MemoryPool(MemorySource source) : source_(std::move(source)) {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  /// Throws Error(failed) naming the size if there is no memory.
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;

  /// Gives back to the system what nobody has.
  void trim() noexcept;

  MemoryUse use() const;
  /// How many times the system was asked for memory.
  std::int64_t system_allocations() const;

 private:
  static std::size_t rounded(std::size_t bytes);

  const MemorySource source_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  MemoryUse use_;
  std::int64_t system_allocations_ = 0;
};

}  // namespace rowmill
