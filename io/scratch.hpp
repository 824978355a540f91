#pragma once
// Memory for the length of one read, from a pool (first touch of fresh memory is dear).
#include "core/pool.hpp"

namespace rowmill {

class Scratch {
 public:
  Scratch(MemoryPool& pool, std::size_t bytes)
      : pool_(pool), bytes_(bytes), data_(static_cast<std::byte*>(pool.allocate(bytes))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { pool_.release(data_, bytes_); }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  MemoryPool& pool_;
  std::size_t bytes_;
  std::byte* data_;
};

}  // namespace rowmill
