// Any pointers, indices and values of a sparse matrix: an input error, or rows as kernels take them. An input: flags
// (1 byte), rows (1), columns (1), types of integers and of values (1), pointers that there are too many (1, signed),
// entries (1), first row read (1); then pointers, indices and values. What is missing reads as 0.
#include <algorithm>
#include <memory>
#include <span>

#include "core/error.hpp"
#include "io/sparse_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/plan_check.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill::test {
namespace {

constexpr int kTypes = static_cast<int>(DType::u64) + 1;
constexpr std::size_t kMostBytes = 1 << 16;

class SparseInput {
 public:
  explicit SparseInput(std::span<const std::uint8_t> data) : data_(data) {
    const int flags = byte();
    plan_.path = "f.h5";
    plan_.dataset = "/X";
    plan_.way = (flags & 1) != 0 ? Way::csc : Way::csr;
    plan_.file_bytes = (flags & 2) != 0 ? 0 : 1 << 20;
    memory_limit_ = (flags & 4) != 0 ? 0 : 1 << 20;
    prepares_ = (flags & 32) != 0;
    const std::int64_t rows = byte(), columns = byte();
    const int types = byte();
    plan_.shape = {rows, columns};
    const ElementType integers{static_cast<DType>(types % kTypes), (flags & 8) != 0};
    plan_.type = {static_cast<DType>(types / kTypes % kTypes), (flags & 16) != 0};
    const int more = static_cast<std::int8_t>(byte());
    const std::int64_t pointers = (plan_.way == Way::csc ? columns : rows) + 1 + more, entries = byte();
    first_ = byte();
    add_part(std::max<std::int64_t>(0, pointers), integers);
    add_part(entries, integers);
    add_part(entries, plan_.type);
  }

  void read() {
    check_sparse_plan(plan_, memory_limit_);
    std::unique_ptr<Source> source =
        make_sparse_source(plan_, {std::move(parts_[0]), std::move(parts_[1]), std::move(parts_[2])}, memory_limit_);
    const std::int64_t first = std::min(first_, plan_.shape[0]);
    const RowRange rows{first, plan_.shape[0] - first};
    if (prepares_ && plan_.shape[0] > 0) {
      const std::int64_t begin = first / 2;  // of rows that overlap with those that are read, or do not
      source->prepare({.grid = BlockGrid({0, plan_.shape[0]}, 1),
                       .rows = {begin, (plan_.shape[0] - begin) / 2},
                       .memory_bytes = 1 << 20});
    }
    require_rows(*source, rows);
    if (plan_.shape[1] == 0) return;
    source = select_columns(std::move(source), {plan_.shape[1] - 1, 0});
    require_rows(*source, rows);
  }

 private:
  int byte() { return at_ < data_.size() ? data_[at_++] : 0; }

  void add_part(std::int64_t count, ElementType type) {
    InputPlan part = plan_;
    part.parts.clear();
    part.way = Way::contiguous;
    part.shape = {count};
    part.type = type;
    plan_.parts.push_back(part);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_of(type));
    for (std::byte& one : bytes) one = static_cast<std::byte>(byte());
    parts_.push_back(MemorySource::dense(type, count, 1, std::move(bytes)));
  }

  static void require_rows(Source& source, RowRange rows) {
    static const GuardedMemory memory(kMostBytes);
    const std::size_t bytes = source.bytes_for(rows);
    if (bytes > kMostBytes || bytes % 64 != 0) return;
    const SourceRows got = source.read(rows, memory.last(bytes));
    const auto& csr = std::get<CsrRows>(got.rows);
    require(csr.rows == rows.count && csr.row_start[0] == 0);
    for (std::int64_t row = 0; row < csr.rows; ++row) {
      require(csr.row_start[row] <= csr.row_start[row + 1]);
      for (std::int64_t k = csr.row_start[row]; k < csr.row_start[row + 1]; ++k) {
        require(csr.index[k] >= 0 && csr.index[k] < csr.columns);
        require(k == csr.row_start[row] || csr.index[k - 1] < csr.index[k]);
      }
    }
  }

  std::span<const std::uint8_t> data_;
  std::size_t at_ = 0;
  InputPlan plan_;
  std::vector<std::unique_ptr<Source>> parts_;
  bool prepares_ = false;
  std::int64_t memory_limit_ = 0, first_ = 0;
};

}  // namespace
}  // namespace rowmill::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rowmill;
  try {
    test::SparseInput({data, size}).read();
  } catch (const Error& e) {
    if (e.code() != ExitCode::input) std::abort();
  }
  return 0;
}
