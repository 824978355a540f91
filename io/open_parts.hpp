#pragma once
// The sources of many files, of which few are open at a time.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "io/source.hpp"

namespace rowmill {

/// Thread safe. A source is opened when somebody wants it, and closed when nobody has wanted it for longest.
class OpenParts {
 private:
  struct Entry;

 public:
  /// Opens part i.
  using Open = std::function<std::unique_ptr<Source>(std::size_t)>;
  /// Bytes that sources have read since it was last told.
  using Count = std::function<void(std::int64_t)>;

  /// Keeps `idle` sources open beside those that are in use.
  OpenParts(Open open, Count count, std::size_t idle);
  ~OpenParts();

  /// A source that stays open as long as this.
  class InUse {
   public:
    InUse(OpenParts& owner, std::size_t part);
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse();
    Source& operator*() const;
    Source* operator->() const { return &**this; }

   private:
    OpenParts& owner_;
    std::size_t part_;
    std::shared_ptr<Entry> entry_;
  };

  void close_idle();

 private:
  void give_back(std::size_t part, Entry& entry, bool was_open);

  Open open_;
  Count count_;
  std::size_t most_idle_;
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::shared_ptr<Entry>> entries_;
  std::list<std::size_t> idle_;  ///< the one that was in use last is last
};

}  // namespace rowmill
