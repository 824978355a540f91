#include "tests/gpu/test_device.hpp"

#include <variant>

namespace rowmill::test {

namespace {

/// Copies bytes to `offset` of a new device buffer; returns where they are.
template <typename T>
const T* upload(Backend& backend, Queue queue, const T* from, std::int64_t count, std::size_t offset,
                std::vector<DeviceBuffer>& buffers) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  DeviceBuffer buffer(backend, offset + bytes + 64, queue);
  if (bytes > 0) backend.copy(buffer.data() + offset, from, bytes, queue);
  backend.wait_host(backend.record(queue));
  const auto* const there = reinterpret_cast<const T*>(buffer.data() + offset);
  buffers.push_back(std::move(buffer));
  return there;
}

}  // namespace

DeviceBlock::DeviceBlock(Backend& backend, Queue queue, const Block& block, bool misaligned) : block_(block) {
  const auto put = [&](const auto* from, std::int64_t count, std::size_t offset) {
    return upload(backend, queue, from, count, offset, buffers_);
  };
  const std::size_t element = size_of(element_type(block.x)), offset = misaligned ? element : 0;
  if (auto* const dense = std::get_if<DenseRows>(&block_.x)) {
    const std::int64_t elements =
        dense->rows == 0 ? 0 : (dense->rows - 1) * dense->stride + dense->columns;  // no gap behind the last row
    dense->data = put(dense->data, elements * static_cast<std::int64_t>(element), offset);
  } else {
    auto& sparse = std::get<CsrRows>(block_.x);
    const std::int64_t entries = sparse.row_start[sparse.rows];
    sparse.row_start = put(sparse.row_start, sparse.rows + 1, 0);
    sparse.index = put(sparse.index, entries, 0);
    sparse.value = put(sparse.value, entries * static_cast<std::int64_t>(element), offset);
  }
  if (!block_.missing || block_.missing->rows == 0) return;
  MaskView& mask = *block_.missing;
  mask.data = put(mask.data, (mask.rows - 1) * mask.stride + mask.cols, misaligned ? 1 : 0);
}

void OnTestDevice::SetUp() {
  if (device_->backend == nullptr) GTEST_SKIP() << device_->why_not;
  ASSERT_EQ(backend().name(), device_->backend_name) << "something else ran";
  queue_ = backend().make_queue();
}

void OnTestDevice::prepare(const Block& block, std::optional<Precision> product) const {
  ops().prepare({element_type(block.x), row_count(block.x), column_count(block.x), product}, queue_);
}

}  // namespace rowmill::test
