#pragma once
// A data set in storage chunks that are read whole and decoded by the threads that read: filters, any row axis.
#include <memory>
#include <mutex>
#include <vector>

#include "core/pool.hpp"
#include "io/band_keeper.hpp"
#include "io/band_store.hpp"
#include "io/chunk_grid.hpp"
#include "io/dense_source.hpp"
#include "io/filters/filters.hpp"
#include "io/input_plan.hpp"
#include "io/stored_chunks.hpp"

namespace rowmill {

/// Each storage chunk is decoded once: straight into the buffer where a block holds whole bands of storage chunks, else
/// into bands that blocks share, as far as memory holds these.
class DecodedSource : public DenseSource {
 public:
  /// `memory_bytes`: what bands may take until prepare() says otherwise.
  DecodedSource(const InputPlan& plan, std::unique_ptr<StoredChunks> stored, std::int64_t memory_bytes);
  ~DecodedSource() override;
  void prepare(const ReadingPlan& plan) override;

 protected:
  void fill(RowRange rows, std::byte* to) override;

 private:
  /// Storage chunks [first, end) of those that all bands have one after another.
  struct Cells {
    std::int64_t first, end;
  };
  struct Workspace;
  class Borrowed;

  /// One storage chunk as it is stored.
  struct Piece {
    std::int64_t band, cell;
    StoredChunk stored;
  };

  /// Calls body(workspace, piece) for each of the storage chunks; names the one whose filters cannot be undone.
  template <typename F>
  void for_each(Cells cells, RowRange rows, F&& body);
  void decode(Cells cells, RowRange rows, std::byte* to);
  void decode_one(Workspace& space, const Piece& piece, RowRange rows, std::byte* to);
  void keep(std::int64_t band, std::int64_t first_cell, std::int64_t end_cell, std::int64_t place);
  const std::byte* whole_chunk(Workspace& space, const StoredChunk& stored);
  void unfilter(Workspace& space, const StoredChunk& stored, std::span<std::byte> to) const;
  StoredChunk with_edges(StoredChunk stored, std::int64_t band, std::int64_t cell) const;
  void give_up_or_warn(std::int64_t block_rows);

  const ChunkGrid grid_;
  const FillValue value_;
  const FilterChain chain_;
  const bool filtered_, edges_unfiltered_;
  const std::unique_ptr<StoredChunks> stored_;
  MemoryPool scratch_;
  std::mutex spaces_mutex_;
  std::vector<std::unique_ptr<Workspace>> spaces_;  ///< idle
  BandStore store_;
  std::unique_ptr<BandKeeper> keeper_;  ///< where store_ keeps bands
};

}  // namespace rowmill
