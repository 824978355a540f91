#include "io/stored_chunks.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "io/chunk_grid.hpp"
#include "io/contiguous_source.hpp"
#include "io/h5_helper_answer.hpp"
#include "io/read_file.hpp"
#include "io/scratch.hpp"

namespace rowmill {

namespace {

class ChunksAtAddresses : public StoredChunks {
 public:
  explicit ChunksAtAddresses(const InputPlan& plan) : file_(reopen(plan)), table_(plan.chunk_table) {
    for (const h5::ChunkEntry& entry : table_) most_bytes_ = std::max(most_bytes_, entry.bytes);
  }

  std::int64_t read(std::span<const std::int64_t> grid_indices, RowRange rows, const Body& body) override {
    const Scratch scratch(scratch_, static_cast<std::size_t>(most_bytes_));
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < grid_indices.size(); ++i) {
      const h5::ChunkEntry* entry = find(grid_indices[i]);
      if (entry == nullptr) {
        body(i, {});
        continue;
      }
      const std::span<std::byte> stored(scratch.data(), static_cast<std::size_t>(entry->bytes));
      file_.read(entry->address, stored, rows.first);
      bytes += entry->bytes;
      body(i, {stored, entry->mask});
    }
    return bytes;
  }

  std::int64_t reader_bytes() const override { return most_bytes_; }

 private:
  const h5::ChunkEntry* find(std::int64_t index) const {
    const auto found =
        std::lower_bound(table_.begin(), table_.end(), index,
                         [](const h5::ChunkEntry& e, std::int64_t wanted) { return e.grid_index < wanted; });
    return found == table_.end() || found->grid_index != index ? nullptr : &*found;
  }

  ReadFile file_;
  std::vector<h5::ChunkEntry> table_;
  std::int64_t most_bytes_ = 1;
  MemoryPool scratch_;
};

class ChunksByHelper : public StoredChunks {
 public:
  ChunksByHelper(const InputPlan& plan, std::string program, HelperLimits limits)
      : name_(plan.name()),
        filtered_(!plan.filters.empty()),
        chunk_bytes_(ChunkGrid(plan).chunk_bytes()),
        shared_bytes_(std::max(kSharedBytes, h5::most_stored_bytes(chunk_bytes_))),
        readers_(plan, std::move(program), limits) {
    readers_.set_opening({.cache_bytes = 0, .cache_slots = 521, .shared_bytes = shared_bytes_});
  }

  std::int64_t read(std::span<const std::int64_t> grid_indices, RowRange rows, const Body& body) override {
    std::int64_t bytes = 0;
    try {
      HelperReader reader = readers_.take(0);
      const Scratch scratch(scratch_, static_cast<std::size_t>(h5::most_stored_bytes(chunk_bytes_)));
      for (std::size_t done = 0; done < grid_indices.size();) {
        const auto wanted = grid_indices.subspan(done, std::min(kMostAtOnce, grid_indices.size() - done));
        for (const h5::ChunkEntry& entry : fetch(*reader.client, wanted)) {
          bytes += hand_over(*reader.client, entry, scratch, done++, body);
        }
      }
      readers_.give_back(std::move(reader));
    } catch (const Error& e) {
      if (std::string(e.what()).find("(rows ") != std::string::npos) throw;
      throw Error(e.code(), std::string(e.what()) + " (rows " + std::to_string(rows.first) + " to " +
                                std::to_string(rows.end() - 1) + ")");
    }
    return bytes;
  }

  std::int64_t reader_bytes() const override {
    return kHelperBytes + shared_bytes_ + h5::most_stored_bytes(chunk_bytes_);
  }

 private:
  static constexpr std::int64_t kSharedBytes = 1 << 20;
  static constexpr std::size_t kMostAtOnce = 8192;  ///< a request's tail

  std::vector<h5::ChunkEntry> fetch(H5HelperClient& client, std::span<const std::int64_t> wanted) {
    const auto answer =
        client.ask({{"op", "chunks"}}, std::string(reinterpret_cast<const char*>(wanted.data()), wanted.size_bytes()));
    std::vector<h5::ChunkEntry> entries(answer.tail.size() / sizeof(h5::ChunkEntry));
    if (entries.empty() || entries.size() > wanted.size()) fail();
    std::memcpy(entries.data(), answer.tail.data(), entries.size() * sizeof(h5::ChunkEntry));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const h5::ChunkEntry& entry = entries[i];
      if (entry.grid_index != wanted[i]) fail();
      if (entry.address == -1) continue;
      if (entry.bytes < 1 || entry.bytes > h5::most_stored_bytes(chunk_bytes_) || entry.address < 0 ||
          entry.address > shared_bytes_ - entry.bytes || (!filtered_ && entry.bytes != chunk_bytes_)) {
        fail();
      }
    }
    return entries;
  }

  /// The bytes are copied first: a helper taken over by a hostile file could change them while they are looked at.
  std::int64_t hand_over(const H5HelperClient& client, const h5::ChunkEntry& entry, const Scratch& scratch,
                         std::size_t position, const Body& body) {
    if (entry.address == -1) {
      body(position, {});
      return 0;
    }
    const auto bytes = static_cast<std::size_t>(entry.bytes);
    std::memcpy(scratch.data(), client.shared().data() + entry.address, bytes);
    body(position, {{scratch.data(), bytes}, entry.mask});
    return entry.bytes;
  }

  [[noreturn]] void fail() const {
    throw Error(ExitCode::input, name_ + ": the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  }

  std::string name_;
  bool filtered_;
  std::int64_t chunk_bytes_, shared_bytes_;
  HelperReaders readers_;
  MemoryPool scratch_;
};

}  // namespace

std::unique_ptr<StoredChunks> chunks_at_addresses(const InputPlan& plan) {
  return std::make_unique<ChunksAtAddresses>(plan);
}

std::unique_ptr<StoredChunks> chunks_by_helper(const InputPlan& plan, std::string program, HelperLimits limits) {
  return std::make_unique<ChunksByHelper>(plan, std::move(program), limits);
}

}  // namespace rowmill
