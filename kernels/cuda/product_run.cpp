#include "kernels/cuda/product_run.hpp"

#include <algorithm>
#include <cmath>

namespace rowmill {

namespace {

class ProductRun {
 public:
  ProductRun(const ProductPlan& plan, std::byte* scratch, double* packed, ProductKernels& kernels, BlasCalls& blas)
      : plan_(plan), packed_(packed), kernels_(kernels), blas_(blas) {
    element_ = bytes_of(plan.factor);
    sum_ = sum_bytes_of(plan.factor);
    work_ = scratch;
    sums_ = scratch;
  }

  void all(const Block& block, ColumnMap map, const ProductScratch& at, int compute_capability);

 private:
  void multiply(std::int64_t slabs, bool first_batch);
  void multiply(const Panel& panel, std::int64_t first_slab, std::int64_t slabs);
  void multiply_double(const Panel& panel);
  GemmCall rows_call(const Panel& panel, const std::byte* work, std::int64_t slabs) const;
  GemmCall bytes_call(const Panel& panel, const std::byte* work, std::int64_t slabs) const;

  const ProductPlan& plan_;
  double* packed_;
  ProductKernels& kernels_;
  BlasCalls& blas_;
  std::int64_t element_, sum_;
  std::byte *work_, *sums_;
  double* column_sums_ = nullptr;
};

void ProductRun::all(const Block& block, ColumnMap map, const ProductScratch& at, int compute_capability) {
  std::byte* const scratch = work_;
  work_ = scratch + at.work;
  sums_ = scratch + at.sums;
  const bool is_double = plan_.precision == Precision::fp64, is_int8 = plan_.precision == Precision::int8;
  auto* const greatest = is_double || is_int8 ? nullptr : reinterpret_cast<std::uint64_t*>(scratch + at.greatest);
  auto* const flag = reinterpret_cast<std::int32_t*>(scratch + at.flag);
  column_sums_ = is_int8 ? reinterpret_cast<double*>(scratch + at.column_sums) : nullptr;
  if (!is_double) kernels_.clear(flag, sizeof *flag);
  if (greatest != nullptr) kernels_.clear(greatest, static_cast<std::size_t>(plan_.columns) * sizeof *greatest);

  for (std::int64_t slab = 0; slab < plan_.slabs; slab += plan_.batch_slabs) {
    const std::int64_t slabs = std::min(plan_.batch_slabs, plan_.slabs - slab);
    const std::int64_t first = slab * plan_.slab_rows;
    const std::int64_t rows = std::min(slabs * plan_.slab_rows, plan_.rows - first);
    kernels_.convert({&block, map, &plan_, first, rows, slabs, work_, greatest, flag});
    multiply(slabs, slab == 0);
  }
  const ElementType type = element_type(block.x);
  if (is_int8) {
    const double offset = type.dtype == DType::u8 ? 128 : 0;
    kernels_.undo_offset({map, plan_.rows, plan_.columns, offset, column_sums_, packed_});
  }
  if (greatest != nullptr) {
    const ProductModel model{type, map.shift != nullptr || map.scale != nullptr, compute_capability};
    kernels_.check(greatest, plan_.columns, column_range(plan_.precision, model), flag);
  }
  if (!is_double) kernels_.redo(block, map, flag, packed_);
}

void ProductRun::multiply(std::int64_t slabs, bool first_batch) {
  for (const Panel& panel : plan_.panels) {
    const std::int64_t group = plan_.group_slabs(panel);
    for (std::int64_t slab = 0; slab < slabs; slab += group) {
      const std::int64_t count = std::min(group, slabs - slab);
      multiply(panel, slab, plan_.call_slabs(panel, count));
      kernels_.fold({&plan_, panel, sums_, count, first_batch && slab == 0, packed_, column_sums_});
    }
  }
}

void ProductRun::multiply(const Panel& panel, std::int64_t first_slab, std::int64_t slabs) {
  if (plan_.precision == Precision::fp64) {
    multiply_double(panel);
    return;
  }
  const std::byte* const work = work_ + first_slab * plan_.slab_elements() * element_;
  if (plan_.precision == Precision::int8) {
    blas_.gemm(bytes_call(panel, work, slabs));
    return;
  }
  GemmCall call = rows_call(panel, work, slabs);
  if (plan_.precision == Precision::bf16x3) {
    const std::int64_t copy_bytes = plan_.slab_rows * plan_.leading * element_;
    GemmCall low = call;  // the small terms first, so that they are not cut at the size of the large one
    low.k = high_copy * plan_.slab_rows + plan_.slab_rows;
    low.b += copy_bytes;
    blas_.gemm(low);
    call.a += high_copy * copy_bytes;
    call.b += high_copy * copy_bytes;
    call.add = true;
  }
  blas_.gemm(call);
}

/// Panel lines are columns of C: C (leading × lines) = A(0 … leading) A(first … first + lines)ᵀ.
GemmCall ProductRun::rows_call(const Panel& panel, const std::byte* work, std::int64_t slabs) const {
  GemmCall call;
  call.factor = plan_.factor;
  call.transpose_b = true;
  call.m = panel.leading;
  call.n = panel.lines;
  call.k = plan_.slab_rows;
  call.a = work;
  call.b = work + panel.first * element_;
  call.lda = call.ldb = plan_.leading;
  call.stride_a = call.stride_b = plan_.slab_elements();
  call.c = sums_;
  call.ldc = panel.leading;
  call.stride_c = panel.elements();
  call.batch = slabs;
  return call;
}

/// int8: both operands have rows running fastest, so A is the one that is transposed.
GemmCall ProductRun::bytes_call(const Panel& panel, const std::byte* work, std::int64_t slabs) const {
  GemmCall call = rows_call(panel, work, slabs);
  call.transpose_a = true;
  call.transpose_b = false;
  call.b = work + panel.first * plan_.slab_rows;
  call.lda = call.ldb = plan_.slab_rows;
  return call;
}

/// What lies left of the diagonal by GEMM, the diagonal by SYRK. A batch of fp64 is one slab.
void ProductRun::multiply_double(const Panel& panel) {
  if (panel.first > 0) {
    GemmCall left = rows_call(panel, work_, 1);
    left.m = panel.first;
    blas_.gemm(left);
  }
  SyrkCall diagonal;
  diagonal.n = panel.count;
  diagonal.k = plan_.slab_rows;
  diagonal.a = work_ + panel.first * element_;
  diagonal.lda = plan_.leading;
  diagonal.c = sums_ + panel.first * sum_;
  diagonal.ldc = panel.leading;
  blas_.syrk(diagonal);
}

class NoKernels final : public ProductKernels {
 public:
  void clear(void*, std::size_t) override {}
  void convert(const ConvertCall&) override {}
  void fold(const FoldCall&) override {}
  void undo_offset(const OffsetCall&) override {}
  void check(const std::uint64_t*, std::int64_t, Range, std::int32_t*) override {}
  void redo(const Block&, ColumnMap, const std::int32_t*, double*) override {}
};

}  // namespace

void run_product(const Block& block, ColumnMap map, const ProductChoice& choice, int compute_capability,
                 std::byte* scratch, double* packed, ProductKernels& kernels, BlasCalls& blas,
                 const ProductLimits& limits) {
  const std::int64_t columns = column_count(block.x);
  const ProductPlan plan(row_count(block.x), columns, choice, limits);
  if (plan.rows == 0) {
    kernels.clear(packed, static_cast<std::size_t>(columns * (columns + 1) / 2) * sizeof(double));
    return;
  }
  ProductRun run(plan, scratch, packed, kernels, blas);
  run.all(block, map, product_scratch(columns, choice.precision, limits), compute_capability);
}

void call_all_shapes(ElementType type, std::int64_t columns, const ProductChoice& choice, std::byte* scratch,
                     BlasCalls& blas, const ProductLimits& limits) {
  Block longest;
  longest.x = DenseRows{nullptr, type, limits.rows, columns, columns};
  NoKernels none;
  run_product(longest, {}, choice, 0, scratch, nullptr, none, blas, limits);
}

}  // namespace rowmill
