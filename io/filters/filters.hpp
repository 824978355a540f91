#pragma once
// Undoes the filters of storage chunks, by the steps that stand in a data set's creation list. Nothing of HDF5 is
// needed or called. The bytes are a stranger's: nothing is allocated by a size that they name, and nothing they hold
// leads outside the buffers.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/pool.hpp"

namespace rowmill {

/// One filter of a data set, with its client data.
struct FilterStep {
  std::uint32_t id = 0;
  std::vector<std::uint32_t> values;

  bool operator==(const FilterStep&) const = default;
};

/// "gzip"; empty for a filter that is not known.
std::string name_of_filter(std::uint32_t id);

/// Empty if FilterChain undoes this step; else why it does not: "filter 5 (n-bit) is not decoded here".
std::string why_not_decoded(const FilterStep& step);

/// What is wrong with the bytes of a storage chunk: "filter 1 (gzip): they are damaged or truncated". Which storage
/// chunk it is, the caller knows.
class FilterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a library keeps between two storage chunks.
class FilterContext {
 public:
  virtual ~FilterContext() = default;
};

/// Memory and contexts of libraries that decoding reuses from storage chunk to storage chunk. For one thread at a time.
class FilterScratch {
 public:
  enum Use { even_step, odd_step, within_step, kUses };

  /// The pool gives the memory and outlives this.
  explicit FilterScratch(MemoryPool& pool) : pool_(pool) {}
  FilterScratch(const FilterScratch&) = delete;
  FilterScratch& operator=(const FilterScratch&) = delete;
  ~FilterScratch();

  /// Memory for one use, good until the next call for the same use.
  std::span<std::byte> memory(Use use, std::size_t bytes);

  std::unique_ptr<FilterContext> deflate, zstd;

 private:
  MemoryPool& pool_;
  std::array<std::span<std::byte>, kUses> memory_;
};

/// The filters of a data set. Thread safe.
class FilterChain {
 public:
  /// `steps` in the order of writing. Throws FilterError if one of them cannot be undone.
  explicit FilterChain(std::vector<FilterStep> steps);

  /// Undoes the steps from the last to the first, but for those whose bit is set in `mask` (bit i: steps[i], as HDF5
  /// stores it with each storage chunk), and leaves exactly to.size() bytes in `to`, or throws FilterError. `to` is the
  /// whole storage chunk and does not overlap `stored`.
  void decode(std::span<const std::byte> stored, std::uint32_t mask, std::span<std::byte> to,
              FilterScratch& scratch) const;

  /// The most memory that a FilterScratch takes from its pool while it serves storage chunks of so many bytes.
  std::size_t scratch_bytes(std::size_t chunk_bytes) const;

 private:
  std::vector<FilterStep> steps_;
};

}  // namespace rowmill
