#include "io/band_store.hpp"

#include <algorithm>
#include <utility>

namespace rowmill {

void BandStore::allow(std::int64_t bands, std::int64_t end_band) {
  allowed_ = bands;
  end_band_ = end_band;
}

BandStore::Band* BandStore::find(std::int64_t band) {
  const auto found = std::find_if(bands_.begin(), bands_.end(), [&](const Band& b) { return b.index == band; });
  return found == bands_.end() ? nullptr : &*found;
}

void BandStore::begin(Band& band, std::int64_t index) {
  band = {.index = index, .place = band.place, .cells_left = shape_.cells, .last_use = ++uses_};
}

/// The band, new or not; null while there is no room for it.
BandStore::Band* BandStore::find_or_begin(std::int64_t band) {
  if (Band* there = find(band)) return there;
  if (static_cast<std::int64_t>(bands_.size()) < allowed_) {
    Band& fresh = bands_.emplace_back();
    fresh.place = static_cast<std::int64_t>(bands_.size()) - 1;
    begin(fresh, band);
    return &fresh;
  }
  // one of which all is taken makes room, else the one that was used longest ago
  Band* oldest = nullptr;
  for (Band& other : bands_) {
    if (other.users > 0) continue;
    if (oldest == nullptr || std::pair(!other.done, other.last_use) < std::pair(!oldest->done, oldest->last_use)) {
      oldest = &other;
    }
  }
  if (oldest != nullptr) begin(*oldest, band);
  return oldest;
}

/// A band is begun early only where no other has to go for it that is still wanted.
bool BandStore::may_begin_early(std::int64_t band) {
  if (band >= end_band_) return false;
  if (const Band* there = find(band)) return there->next_cell < shape_.cells;
  return static_cast<std::int64_t>(bands_.size()) < allowed_ ||
         std::any_of(bands_.begin(), bands_.end(), [](const Band& b) { return b.done && b.users == 0; });
}

void BandStore::decode_some(Lock& lock, Band& band) {
  const std::int64_t first = band.next_cell, end = std::min(shape_.cells, first + shape_.cells_at_once);
  band.next_cell = end;
  ++band.users;
  std::exception_ptr error;
  lock.unlock();
  try {
    decode_(band.index, first, end, band.place);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  --band.users;
  band.cells_left -= end - first;
  if (error && !band.error) band.error = error;
  changed_.notify_all();
}

void BandStore::complete(Lock& lock, Band& band) {
  while (band.cells_left > 0) {
    if (band.next_cell < shape_.cells) {
      decode_some(lock, band);
    } else if (may_begin_early(band.index + 1)) {
      decode_some(lock, *find_or_begin(band.index + 1));
    } else {
      changed_.wait(lock);
    }
  }
}

void BandStore::use(std::int64_t index, std::int64_t rows, std::int64_t taken,
                    const std::function<void(std::int64_t)>& take) {
  Lock lock(mutex_);
  Band* band = find_or_begin(index);
  while (band == nullptr) {
    changed_.wait(lock);
    band = find_or_begin(index);
  }
  ++band->users;
  if (std::exchange(band->done, false)) band->rows_taken = 0;  // another pass
  complete(lock, *band);
  std::exception_ptr error = band->error;
  if (!error) {
    lock.unlock();
    try {
      take(band->place);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
  }
  --band->users;
  band->rows_taken += taken;
  band->last_use = ++uses_;
  band->done = error || band->rows_taken >= rows;
  if (error && band->users == 0) band->index = -1;
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
}

}  // namespace rowmill
