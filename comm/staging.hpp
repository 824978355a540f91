#pragma once
// Staging memory for as long as a transfer takes.
#include <cstddef>

#include "core/backend.hpp"

namespace rowmill {

/// Only where the host cannot reach the data itself.
class Staging {
 public:
  Staging(Backend& backend, std::size_t bytes) : backend_(backend), bytes_(bytes) {
    if (!backend.unified() && bytes > 0) data_ = static_cast<std::byte*>(backend.allocate_staging(bytes));
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() {
    if (data_ != nullptr) backend_.release_staging(data_, bytes_);
  }

  std::byte* data() const { return data_; }  ///< null where none is needed

 private:
  Backend& backend_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace rowmill
