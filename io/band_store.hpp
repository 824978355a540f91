#pragma once
// Which bands of storage chunks, shared by several blocks, are decoded, and where: so that each storage chunk is
// decoded once while blocks are read in order.
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <mutex>

namespace rowmill {

/// Deals a given number of places, in memory or in a file, among bands. Threads that want the same band decode it
/// together, and while there is nothing left of it to begin they begin the next one. Thread safe.
class BandStore {
 public:
  /// Decodes the storage chunks [first_cell, end_cell) of a band to the band's place.
  using Decode =
      std::function<void(std::int64_t band, std::int64_t first_cell, std::int64_t end_cell, std::int64_t place)>;

  struct Shape {
    std::int64_t cells = 1, cells_at_once = 1;  ///< of a band, and those that one thread decodes at a time
  };
  BandStore(Shape shape, Decode decode) : shape_(shape), decode_(std::move(decode)) {}

  /// Before the first use. The next band is begun only before `end_band`.
  void allow(std::int64_t bands, std::int64_t end_band);
  std::int64_t bands_allowed() const { return allowed_; }

  /// Calls take(the band's place) with the band decoded. `taken`: how many of its `rows` rows
  /// that is; a band of which all have been taken makes room for others first. Throws what decoding and `take` throw.
  void use(std::int64_t band, std::int64_t rows, std::int64_t taken, const std::function<void(std::int64_t)>& take);

 private:
  struct Band {
    std::int64_t index = -1, place = 0;
    std::int64_t next_cell = 0, cells_left = 0, rows_taken = 0, last_use = 0;
    int users = 0;
    bool done = false;  ///< all of its rows have been taken
    std::exception_ptr error = nullptr;
  };
  using Lock = std::unique_lock<std::mutex>;

  Band* find(std::int64_t band);
  Band* find_or_begin(std::int64_t band);
  void begin(Band& band, std::int64_t index);
  bool may_begin_early(std::int64_t band);
  void decode_some(Lock& lock, Band& band);
  void complete(Lock& lock, Band& band);

  const Shape shape_;
  const Decode decode_;
  std::int64_t allowed_ = 0, end_band_ = 0;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::list<Band> bands_;
  std::int64_t uses_ = 0;
};

}  // namespace rowmill
