#include "io/fill_value.hpp"

#include <algorithm>
#include <cstring>

namespace rowmill {

FillValue::FillValue(std::vector<std::byte> element) : element_(std::move(element)) {
  // without rows there may be no fill value; nothing is filled then
  if (element_.empty()) element_.push_back(std::byte{0});
  all_bytes_same_ = std::all_of(element_.begin(), element_.end(), [&](std::byte b) { return b == element_[0]; });
}

void FillValue::repeat(std::int64_t count, std::byte* to) const {
  const std::size_t bytes = element_.size() * static_cast<std::size_t>(count);
  if (all_bytes_same_) {
    std::memset(to, static_cast<int>(element_[0]), bytes);
    return;
  }
  std::size_t done = std::min(element_.size(), bytes);
  std::memcpy(to, element_.data(), done);
  while (done < bytes) {
    // what was copied is copied again, while it is in cache
    const std::size_t more = std::min({done, bytes - done, std::size_t{1} << 14});
    std::memcpy(to + done, to, more);
    done += more;
  }
}

void FillSource::fill(RowRange rows, std::byte* to) {
  value_.repeat(rows.count * info().columns, to);
}

}  // namespace rowmill
