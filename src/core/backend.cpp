#include "core/backend.hpp"

#include <utility>

namespace rowmill {

DeviceBuffer::DeviceBuffer(Backend& backend, std::size_t bytes, Queue queue)
    : backend_(&backend),
      data_(static_cast<std::byte*>(backend.allocate(bytes, queue))),
      bytes_(bytes),
      queue_(queue) {}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) backend_->release(data_, bytes_, queue_);
}

void DeviceBuffer::swap(DeviceBuffer& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(queue_, other.queue_);
}

}  // namespace rowmill
