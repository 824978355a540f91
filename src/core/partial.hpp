#pragma once
// Partials: what one lane, one rank, and at last all ranks have summed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/binned.hpp"

namespace rowmill {

enum class ElementKind : std::uint8_t { i8, i32, i64, f64, binned };
/// How partials of lanes and ranks become one. `none` is scratch: per lane, never combined nor saved.
enum class Combine : std::uint8_t { none, sum, min, max };

/// One named block of a partial. binned: sum. i64: sum, min, max. f64: min, max (a sum of f64 would depend on order).
struct PartialBlock {
  std::string name;
  ElementKind kind = ElementKind::i64;
  Combine combine = Combine::sum;
  std::int64_t count = 0;
  std::size_t offset = 0, bytes = 0;  ///< 64-byte aligned

  bool operator==(const PartialBlock&) const = default;
};

class PartialLayout {
 public:
  /// Throws std::invalid_argument for a pair of kind and combine that depends on order, or a name used twice.
  PartialLayout& add(std::string name, ElementKind kind, Combine combine, std::int64_t count);
  /// Per-lane scratch of `count` doubles.
  PartialLayout& add_scratch(std::string name, std::int64_t doubles);
  PartialLayout& add_scratch_bytes(std::string name, std::int64_t bytes);

  const std::vector<PartialBlock>& blocks() const { return blocks_; }
  const PartialBlock& block(const std::string& name) const;  ///< throws std::out_of_range
  /// Combined blocks lie first: bytes [0, combined_bytes) are what is merged and saved.
  std::size_t combined_bytes() const { return combined_; }
  std::size_t total_bytes() const { return combined_ + scratch_; }
  bool operator==(const PartialLayout&) const = default;
  std::size_t offset(const PartialBlock& block) const {
    return block.combine == Combine::none ? combined_ + block.offset : block.offset;
  }

 private:
  std::vector<PartialBlock> blocks_;
  std::size_t combined_ = 0, scratch_ = 0;
};

/// A layout over memory that somebody else owns (device memory of a lane, or host memory).
class PartialView {
 public:
  PartialView() = default;
  PartialView(const PartialLayout& layout, std::byte* memory) : layout_(&layout), memory_(memory) {}

  const PartialLayout& layout() const { return *layout_; }
  std::byte* memory() const { return memory_; }
  void* raw(const std::string& name) const { return memory_ + layout_->offset(layout_->block(name)); }
  double* f64(const std::string& name) const { return static_cast<double*>(raw(name)); }
  std::int64_t* i64(const std::string& name) const { return static_cast<std::int64_t*>(raw(name)); }
  BinnedView binned(const std::string& name) const { return binned_view(raw(name), layout_->block(name).count); }

 private:
  const PartialLayout* layout_ = nullptr;
  std::byte* memory_ = nullptr;
};

/// A partial in host memory: owned (but see over()), serialisable. Memory of the scratch blocks is there but is never
/// touched here.
class HostPartial {
 public:
  explicit HostPartial(PartialLayout layout);  ///< the sum of nothing
  /// What lies at `memory`, which outlives this.
  static HostPartial over(PartialLayout layout, std::byte* memory);

  const PartialLayout& layout() const { return layout_; }
  PartialView view() { return {layout_, memory_.get()}; }
  std::span<std::byte> combined() { return {memory_.get(), layout_.combined_bytes()}; }

  /// this += other (same layout).
  void merge(HostPartial& other);

  /// Sums of a binned block, rounded once; values of an f64 block; of an integer block. Throw std::logic_error for
  /// blocks of another kind.
  std::vector<double> sums(const std::string& name);
  std::vector<double> doubles(const std::string& name);
  std::vector<std::int64_t> integers(const std::string& name);

  /// Bytes with a header naming the blocks; `deserialise` throws Error(input) if they are not of this layout.
  std::vector<std::byte> serialise() const;
  void deserialise(std::span<const std::byte> bytes);

 private:
  struct AlignedDelete {
    bool owned;
    void operator()(std::byte* memory) const noexcept;
  };

  HostPartial(PartialLayout layout, std::unique_ptr<std::byte[], AlignedDelete> memory)
      : layout_(std::move(layout)), memory_(std::move(memory)) {}

  PartialLayout layout_;
  std::unique_ptr<std::byte[], AlignedDelete> memory_;  ///< 64-byte aligned
};

/// Writes the neutral elements of the combined blocks: zero sums, +inf for min of f64, and so on. `memory` is host
/// memory.
void set_neutral(const PartialLayout& layout, std::byte* memory);

}  // namespace rowmill
