#pragma once
// What a fuzzer calls (libFuzzer under clang), and what replays its corpus under any compiler.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace rowmill::test {

/// Memory that ends where a page begins that nobody may touch: libraries that were not compiled with a sanitizer
/// stumble over it too.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t most_bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    usable_ = (most_bytes + page_ - 1) / page_ * page_;
    memory_ = mmap(nullptr, usable_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED || mprotect(bytes() + usable_, page_, PROT_NONE) != 0) throw std::bad_alloc();
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(memory_, usable_ + page_); }

  /// The last bytes of it.
  std::span<std::byte> last(std::size_t count) const { return {bytes() + usable_ - count, count}; }
  std::span<std::byte> last(const std::uint8_t* from, std::size_t count) const {
    const std::span<std::byte> place = last(count);
    if (count > 0) std::memcpy(place.data(), from, count);
    return place;
  }

 private:
  std::byte* bytes() const { return static_cast<std::byte*>(memory_); }

  std::size_t page_, usable_ = 0;
  void* memory_ = nullptr;
};

}  // namespace rowmill::test
