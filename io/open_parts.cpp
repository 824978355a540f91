#include "io/open_parts.hpp"

#include <utility>
#include <vector>

namespace rowmill {

struct OpenParts::Entry {
  std::mutex opening;
  std::unique_ptr<Source> source;
  // under the owner's mutex
  int users = 0;
  std::int64_t counted = 0;
};

OpenParts::OpenParts(Open open, Count count, std::size_t idle)
    : open_(std::move(open)), count_(std::move(count)), most_idle_(idle) {}

OpenParts::~OpenParts() = default;

OpenParts::InUse::InUse(OpenParts& owner, std::size_t part) : owner_(owner), part_(part) {
  {
    const std::scoped_lock lock(owner_.mutex_);
    std::shared_ptr<Entry>& entry = owner_.entries_[part];
    if (entry == nullptr) entry = std::make_shared<Entry>();
    if (entry->users++ == 0) owner_.idle_.remove(part);
    entry_ = entry;
  }
  try {
    // others may open other parts meanwhile, and wait here for this one
    const std::scoped_lock lock(entry_->opening);
    if (entry_->source == nullptr) entry_->source = owner_.open_(part);
  } catch (...) {
    owner_.give_back(part, *entry_, false);
    throw;
  }
}

OpenParts::InUse::~InUse() {
  owner_.give_back(part_, *entry_, true);
}

Source& OpenParts::InUse::operator*() const {
  return *entry_->source;
}

void OpenParts::give_back(std::size_t part, Entry& entry, bool was_open) {
  std::vector<std::shared_ptr<Entry>> closed;  // without the lock
  const std::scoped_lock lock(mutex_);
  if (was_open) {
    const std::int64_t now = entry.source->bytes_read();
    count_(now - std::exchange(entry.counted, now));
  }
  if (--entry.users > 0) return;
  idle_.push_back(part);
  while (idle_.size() > most_idle_) {
    closed.push_back(std::move(entries_.extract(idle_.front()).mapped()));
    idle_.pop_front();
  }
}

void OpenParts::close_idle() {
  const std::scoped_lock lock(mutex_);
  for (const std::size_t part : std::exchange(idle_, {})) entries_.erase(part);
}

}  // namespace rowmill
