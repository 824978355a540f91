#pragma once
// What sources of sparse rows share: where their rows begin, and how a block of them is put together.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/pool.hpp"
#include "io/input_plan.hpp"
#include "io/scratch.hpp"
#include "io/source.hpp"
#include "io/sparse_rows.hpp"

namespace rowmill {

constexpr std::int64_t sparse_piece_entries = 1 << 17;

/// Throws Error(input).
[[noreturn]] void refuse_sparse(const std::string& name, const std::string& why);

/// Calls take(first entry, bytes of entries, count) for a source of one column, piece by piece.
template <typename F>
void in_pieces(Source& source, std::int64_t count, F&& take) {
  MemoryPool pool;
  const Scratch scratch(pool, std::max<std::size_t>(64, source.bytes_for({0, std::min(count, sparse_piece_entries)})));
  for (std::int64_t first = 0; first < count; first += sparse_piece_entries) {
    const std::int64_t entries = std::min(sparse_piece_entries, count - first);
    source.read({first, entries}, {scratch.data(), scratch.size()});
    take(first, scratch.data(), entries);
  }
}

/// The pointers as int64, which begin at 0, never decrease, and end within the entries. `line`: "row" or "column".
std::vector<std::int64_t> read_pointers(Source& source, std::int64_t entries, const std::string& name,
                                        const char* line);

class SparseSource : public Source {
 public:
  explicit SparseSource(const InputPlan& plan);
  const SourceInfo& info() const override { return info_; }
  std::size_t bytes_for(RowRange rows) const override { return layout(rows).bytes(); }
  SourceRows read(RowRange rows, std::span<std::byte> to) override;

 protected:
  /// A run of entries, at least one, into index and value of the buffer, as they are stored.
  virtual void read_entries(RowRange rows, RowRange entries, const SparseLayout& parts, std::span<std::byte> to) = 0;

  /// The entries of these rows.
  RowRange entries_of(RowRange rows) const;
  /// To be called when row_start_ is known.
  void count_entries();
  /// What the parts have read so far, all together. Thread safe.
  void count_bytes_of_parts(std::int64_t so_far);

  SourceInfo info_;
  std::vector<std::int64_t> row_start_;

 private:
  SparseLayout layout(RowRange rows) const { return {rows.count, entries_of(rows).count, info_.type}; }

  std::mutex counted_mutex_;
  std::int64_t counted_ = 0;
};

}  // namespace rowmill
