#pragma once
// Counts what is taken of a limited kind of memory, by its bytes as asked for.
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/backend.hpp"

namespace rowmill {

/// Thread safe.
class MemoryBudget {
 public:
  /// limit 0: none.
  explicit MemoryBudget(std::int64_t limit) { use_.limit = limit; }

  /// Throws Error(device) naming sizes if less than `bytes` is left; nothing is taken then.
  void take(std::size_t bytes);
  void give_back(std::size_t bytes) noexcept;

  MemoryUse use() const;

 private:
  mutable std::mutex mutex_;
  MemoryUse use_;
};

/// The error of a device that has no `bytes` left.
[[noreturn]] void throw_out_of_device_memory(std::size_t bytes, const MemoryUse& use);

}  // namespace rowmill
