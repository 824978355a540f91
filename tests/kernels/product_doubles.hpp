#pragma once
// Doubles of what a GPU does in a product: plain loops over host memory, which look at every address first.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/product_run.hpp"

namespace rowmill::test {

/// Bytes [begin, end) that calls of a kind may touch.
struct Extent {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

/// Records library calls, checks that their operands lie where they should and are aligned as the library likes, and,
/// if `replay`, does them.
class RecordingBlas final : public BlasCalls {
 public:
  RecordingBlas(Extent work, Extent sums, int compute_capability, bool replay)
      : work_(work), sums_(sums), compute_capability_(compute_capability), replay_(replay) {}

  void gemm(const GemmCall& call) override;
  void syrk(const SyrkCall& call) override;

  std::vector<GemmCall> gemms;
  std::vector<SyrkCall> syrks;

 private:
  void check(const GemmCall& call) const;
  void replay(const GemmCall& call) const;

  Extent work_, sums_;
  int compute_capability_;
  bool replay_;
};

/// The kernels of a product as plain loops.
class PlainKernels : public ProductKernels {
 public:
  void clear(void* to, std::size_t bytes) override;
  void convert(const ConvertCall& call) override;
  void fold(const FoldCall& call) override;
  void undo_offset(const OffsetCall& call) override;
  void check(const std::uint64_t* greatest, std::int64_t columns, Range range, std::int32_t* flag) override;
  void redo(const Block& block, ColumnMap map, const std::int32_t* flag, double* packed) override;

  int redone = 0;  ///< how often a block was done again
};

/// Does nothing, but looks at what it is asked to do.
class CountingKernels final : public ProductKernels {
 public:
  explicit CountingKernels(std::int64_t limit) : limit_(limit) {}
  void clear(void*, std::size_t) override {}
  void convert(const ConvertCall& call) override {
    EXPECT_GE(call.slabs * call.plan->slab_rows, call.rows);
    EXPECT_LE(call.slabs * call.plan->slab_elements() * bytes_of(call.plan->factor), limit_);
    converted += call.rows;
  }
  void fold(const FoldCall& call) override { folded += call.slabs * call.panel.count; }
  void undo_offset(const OffsetCall&) override {}
  void check(const std::uint64_t*, std::int64_t, Range, std::int32_t*) override {}
  void redo(const Block&, ColumnMap, const std::int32_t*, double*) override {}
  std::int64_t converted = 0, folded = 0;

 private:
  std::int64_t limit_;
};

/// The product of a block by the plan, replayed here; scratch and result are poisoned first.
struct ReplayedProduct {
  std::vector<double> packed;
  std::vector<GemmCall> gemms;
  std::vector<SyrkCall> syrks;
  bool redone = false;
};
ReplayedProduct replay_product(const Block& block, ColumnMap map, const ProductChoice& choice, int compute_capability,
                               const ProductLimits& limits = {});

}  // namespace rowmill::test
