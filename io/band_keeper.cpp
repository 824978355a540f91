#include "io/band_keeper.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "core/error.hpp"
#include "io/scratch.hpp"

namespace rowmill {

namespace {

class InMemory : public BandKeeper {
 public:
  explicit InMemory(const ChunkGrid& grid) : grid_(grid) {}

  std::byte* rows_at(std::int64_t place) override {
    const std::scoped_lock lock(mutex_);
    std::unique_ptr<Scratch>& rows = places_[place];
    if (rows == nullptr) rows = std::make_unique<Scratch>(memory_, static_cast<std::size_t>(grid_.band_bytes()));
    return rows->data();
  }
  void put(std::int64_t, std::int64_t, std::int64_t, const std::byte*) override {}
  void take(std::int64_t place, RowRange rows, std::byte* to) override {
    const std::int64_t row_bytes = grid_.row_bytes();
    std::memcpy(to, rows_at(place) + rows.first * row_bytes, static_cast<std::size_t>(rows.count * row_bytes));
  }

 private:
  const ChunkGrid& grid_;
  MemoryPool memory_;
  std::mutex mutex_;
  std::map<std::int64_t, std::unique_ptr<Scratch>> places_;
};

/// A storage chunk is written in one piece, each of its rows without gaps, so that any rows of it are read in one.
class InScratch : public BandKeeper {
 public:
  InScratch(const ChunkGrid& grid, const std::string& folder)
      : grid_(grid), folder_(folder), file_(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    if (file_ < 0) file_ = named_and_removed();
    if (file_ < 0) throw system_error(ExitCode::usage, "--scratch " + folder + ": no file can be made there", errno);
  }
  InScratch(const InScratch&) = delete;
  InScratch& operator=(const InScratch&) = delete;
  ~InScratch() override { ::close(file_); }

  std::byte* rows_at(std::int64_t) override { return nullptr; }

  void put(std::int64_t place, std::int64_t cell, std::int64_t rows, const std::byte* chunk) override {
    const Scratch packed(memory_, static_cast<std::size_t>(grid_.chunk_bytes()));
    grid_.pack(cell, {0, rows}, chunk, packed.data());
    transfer<true>(offset(place, cell, 0), packed.data(), grid_.packed_bytes(cell, rows));
  }

  void take(std::int64_t place, RowRange rows, std::byte* to) override {
    const Scratch packed(memory_, static_cast<std::size_t>(grid_.chunk_bytes()));
    for (std::int64_t cell = 0; cell < grid_.cells(); ++cell) {
      transfer<false>(offset(place, cell, rows.first), packed.data(), grid_.packed_bytes(cell, rows.count));
      grid_.unpack(cell, rows.count, packed.data(), to);
    }
  }

 private:
  /// For file systems without nameless files.
  int named_and_removed() const {
    std::string name = folder_ + "/rowmill-scratch-XXXXXX";
    const int file = ::mkostemp(name.data(), O_CLOEXEC);
    if (file >= 0) ::unlink(name.c_str());
    return file;
  }

  std::int64_t offset(std::int64_t place, std::int64_t cell, std::int64_t row) const {
    return (place * grid_.cells() + cell) * grid_.chunk_bytes() + grid_.packed_bytes(cell, row);
  }

  template <bool write>
  void transfer(std::int64_t at, std::byte* bytes, std::int64_t count) const {
    while (count > 0) {
      const ssize_t done = write ? ::pwrite(file_, bytes, static_cast<std::size_t>(count), at)
                                 : ::pread(file_, bytes, static_cast<std::size_t>(count), at);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) throw system_error(ExitCode::failed, "the scratch file in " + folder_, done < 0 ? errno : EIO);
      at += done;
      bytes += done;
      count -= done;
    }
  }

  const ChunkGrid& grid_;
  std::string folder_;
  int file_;
  MemoryPool memory_;
};

}  // namespace

std::unique_ptr<BandKeeper> keep_in_memory(const ChunkGrid& grid) {
  return std::make_unique<InMemory>(grid);
}

std::unique_ptr<BandKeeper> keep_in_scratch(const ChunkGrid& grid, const std::string& folder) {
  return std::make_unique<InScratch>(grid, folder);
}

}  // namespace rowmill
