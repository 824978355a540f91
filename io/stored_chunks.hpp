#pragma once
// The bytes of storage chunks as they are stored: at their addresses in the file, or fetched through the helper where
// there are too many to list.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/pool.hpp"
#include "io/helper_readers.hpp"
#include "io/input_plan.hpp"

namespace rowmill {

struct StoredChunk {
  std::span<const std::byte> bytes;  ///< empty: it was never written
  std::uint32_t mask = 0;            ///< bit i is set: it did not go through filter i
};

/// Thread safe.
class StoredChunks {
 public:
  /// Called once for each storage chunk, in the order in which they were asked for; `bytes` are there while it lasts.
  using Body = std::function<void(std::size_t position, const StoredChunk& chunk)>;

  virtual ~StoredChunks() = default;
  /// Returns the bytes read. `rows`: for messages. Throws Error(input) naming file and data set.
  virtual std::int64_t read(std::span<const std::int64_t> grid_indices, RowRange rows, const Body& body) = 0;
  /// Memory that each thread takes that reads at the same time.
  virtual std::int64_t reader_bytes() const = 0;
};

/// Of a plan whose way is `chunks`.
std::unique_ptr<StoredChunks> chunks_at_addresses(const InputPlan& plan);

/// Of a plan whose way is `fetched`.
std::unique_ptr<StoredChunks> chunks_by_helper(const InputPlan& plan, std::string program, HelperLimits limits);

}  // namespace rowmill
