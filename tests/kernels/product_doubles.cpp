#include "tests/kernels/product_doubles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/cuda/product_bodies.hpp"
#include "kernels/host/reference.hpp"
#include "kernels/rounding.hpp"
#include "tests/kernels/tensor_core_model.hpp"

namespace rowmill::test {

namespace {

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double magnitude = std::ldexp(fraction + (exponent == 0 ? 0 : 1024), std::max(exponent, 1) - 25);
  if (exponent == 31) magnitude = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
T load_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double load_factor(Factor factor, const std::byte* base, std::int64_t at) {
  const std::byte* const from = base + at * bytes_of(factor);
  switch (factor) {
    case Factor::f64:
      return load_as<double>(from);
    case Factor::f32:
    case Factor::tf32:
      return load_as<float>(from);
    case Factor::bf16:
      return same_bits<float>(static_cast<std::uint32_t>(load_as<std::uint16_t>(from)) << 16);
    case Factor::f16:
      return half_value(load_as<std::uint16_t>(from));
    case Factor::i8:
      return load_as<std::int8_t>(from);
  }
  return 0;
}

Precision precision_of(Factor factor) {
  switch (factor) {
    case Factor::tf32:
      return Precision::tf32;
    case Factor::f16:
      return Precision::fp16;
    default:
      return Precision::bf16;
  }
}

/// One entry of a product, in the arithmetic of the factor.
template <typename A, typename B>
double entry_of(Factor factor, int compute_capability, const A& a, const B& b, std::int64_t k) {
  if (factor == Factor::f64 || factor == Factor::i8) {
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += a(i) * b(i);
    return sum;
  }
  if (factor == Factor::f32) {
    float sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum = std::fma(static_cast<float>(a(i)), static_cast<float>(b(i)), sum);
    return sum;
  }
  return chain(tensor_core(precision_of(factor), compute_capability), a, b, k);
}

/// Does [at, at + elements) lie in the extent?
void expect_within(const Extent& extent, const std::byte* at, std::int64_t elements, std::int64_t bytes,
                   const char* what) {
  EXPECT_GE(at, extent.begin) << what;
  EXPECT_LE(at + elements * bytes, extent.end) << what;
}

/// Elements from a matrix's first to its last: rows × columns, column-major, `batch` of them.
std::int64_t span_of(std::int64_t rows, std::int64_t columns, std::int64_t leading, std::int64_t stride,
                     std::int64_t batch) {
  return (batch - 1) * stride + (columns - 1) * leading + rows;
}

bool aligned(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}

}  // namespace

void RecordingBlas::gemm(const GemmCall& call) {
  gemms.push_back(call);
  check(call);
  if (replay_ && !testing::Test::HasFailure()) replay(call);
}

void RecordingBlas::check(const GemmCall& call) const {
  const std::int64_t bytes = bytes_of(call.factor), sum_bytes = sum_bytes_of(call.factor);
  ASSERT_GT(call.m, 0);
  ASSERT_GT(call.n, 0);
  ASSERT_GT(call.k, 0);
  ASSERT_GT(call.batch, 0);
  const std::int64_t a_rows = call.transpose_a ? call.k : call.m, a_columns = call.transpose_a ? call.m : call.k;
  const std::int64_t b_rows = call.transpose_b ? call.n : call.k, b_columns = call.transpose_b ? call.k : call.n;
  EXPECT_GE(call.lda, a_rows);
  EXPECT_GE(call.ldb, b_rows);
  EXPECT_GE(call.ldc, call.m);
  EXPECT_TRUE(call.batch == 1 || call.stride_c >= call.ldc * call.n) << "sums of slabs overlap";
  expect_within(work_, call.a, span_of(a_rows, a_columns, call.lda, call.stride_a, call.batch), bytes, "A");
  expect_within(work_, call.b, span_of(b_rows, b_columns, call.ldb, call.stride_b, call.batch), bytes, "B");
  expect_within(sums_, call.c, span_of(call.m, call.n, call.ldc, call.stride_c, call.batch), sum_bytes, "C");
  EXPECT_TRUE(aligned(call.a) && aligned(call.b) && aligned(call.c));
  EXPECT_EQ(call.lda * bytes % 16, 0);
  EXPECT_EQ(call.ldb * bytes % 16, 0);
  EXPECT_EQ(call.ldc * sum_bytes % 16, 0);
  EXPECT_EQ(call.stride_a * bytes % 16, 0);
  if (call.factor != Factor::i8) return;
  // what cuBLAS asks of int8 (Data Layout of cublasLtMatmul, "To use IMMA kernels")
  EXPECT_TRUE(call.transpose_a && !call.transpose_b);
  EXPECT_EQ(call.m % 4, 0);
  EXPECT_EQ(call.n % 4, 0);
  EXPECT_EQ(call.k % 4, 0);
  EXPECT_LE(call.k, int8_chain_rows);
}

void RecordingBlas::replay(const GemmCall& call) const {
  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    for (std::int64_t column = 0; column < call.n; ++column) {
      for (std::int64_t row = 0; row < call.m; ++row) {
        const auto a = [&](std::int64_t k) {
          const std::int64_t at = call.transpose_a ? k + row * call.lda : row + k * call.lda;
          return load_factor(call.factor, call.a, batch * call.stride_a + at);
        };
        const auto b = [&](std::int64_t k) {
          const std::int64_t at = call.transpose_b ? column + k * call.ldb : k + column * call.ldb;
          return load_factor(call.factor, call.b, batch * call.stride_b + at);
        };
        const double entry = entry_of(call.factor, compute_capability_, a, b, call.k);
        std::byte* const to = call.c + (batch * call.stride_c + row + column * call.ldc) * sum_bytes_of(call.factor);
        if (call.factor == Factor::f64) {
          const double sum = entry + (call.add ? load_as<double>(to) : 0);
          std::memcpy(to, &sum, sizeof sum);
        } else if (call.factor == Factor::i8) {
          ASSERT_LT(std::abs(entry), 0x1p31);
          const auto sum = static_cast<std::int32_t>(entry) + (call.add ? load_as<std::int32_t>(to) : 0);
          std::memcpy(to, &sum, sizeof sum);
        } else {
          const float sum = static_cast<float>(entry) + (call.add ? load_as<float>(to) : 0);
          std::memcpy(to, &sum, sizeof sum);
        }
      }
    }
  }
}

void RecordingBlas::syrk(const SyrkCall& call) {
  syrks.push_back(call);
  EXPECT_GE(call.lda, call.n);
  EXPECT_GE(call.ldc, call.n);
  expect_within(work_, call.a, span_of(call.n, call.k, call.lda, 0, 1), 8, "A");
  expect_within(sums_, call.c, span_of(call.n, call.n, call.ldc, 0, 1), 8, "C");
  EXPECT_TRUE(aligned(call.a) && aligned(call.c));
  if (!replay_ || testing::Test::HasFailure()) return;
  for (std::int64_t column = 0; column < call.n; ++column) {
    for (std::int64_t row = 0; row <= column; ++row) {
      double sum = 0;
      for (std::int64_t k = 0; k < call.k; ++k) {
        sum += load_factor(Factor::f64, call.a, row + k * call.lda) *
               load_factor(Factor::f64, call.a, column + k * call.lda);
      }
      std::memcpy(call.c + (row + column * call.ldc) * 8, &sum, sizeof sum);
    }
  }
}

void PlainKernels::clear(void* to, std::size_t bytes) {
  std::memset(to, 0, bytes);
}

void PlainKernels::convert(const ConvertCall& call) {
  const ProductPlan& plan = *call.plan;
  for (std::int64_t row = 0; row < call.slabs * plan.slab_rows; ++row) {
    for (std::int64_t column = 0; column < plan.leading; ++column) {
      Placed placed = place(plan, row, column);
      if (row >= call.rows || column >= plan.product_columns) {
        store_factors(plan.precision, 0, call.work, placed);
        continue;
      }
      if (column == plan.columns) {
        store_factors(plan.precision, 1, call.work, placed);
        continue;
      }
      const auto x = host::reference_value(*call.block, call.first_row + row, column);
      const double stored = x ? static_cast<double>(*x) : std::nan("");
      if (plan.precision == Precision::int8) {
        if (!x) *call.flag = 1;
        const double offset = element_type(call.block->x).dtype == DType::u8 ? 128 : 0;
        store_factors(plan.precision, x ? stored - offset : 0, call.work, placed);
        continue;
      }
      const double shift = call.map.shift == nullptr ? 0 : call.map.shift[column];
      const double scale = call.map.scale == nullptr ? 1 : call.map.scale[column];
      const double w = (stored - shift) * scale;
      store_factors(plan.precision, w, call.work, placed);
      if (call.greatest == nullptr || std::isnan(w)) continue;
      call.greatest[column] = std::max(call.greatest[column], same_bits<std::uint64_t>(std::abs(w)));
    }
  }
}

void PlainKernels::fold(const FoldCall& call) {
  const ProductPlan& plan = *call.plan;
  for (std::int64_t i = call.panel.first; i < call.panel.end(); ++i) {
    double* const line = i == plan.columns ? call.column_sums : call.packed + i * (i + 1) / 2;
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = call.first ? 0 : line[j];
      for (std::int64_t slab = 0; slab < call.slabs; ++slab) {
        const std::int64_t at = slab * call.panel.elements() + (i - call.panel.first) * call.panel.leading + j;
        const std::byte* const from = call.sums + at * sum_bytes_of(plan.factor);
        sum += plan.factor == Factor::f64  ? load_as<double>(from)
               : plan.factor == Factor::i8 ? load_as<std::int32_t>(from)
                                           : static_cast<double>(load_as<float>(from));
      }
      line[j] = sum;
    }
  }
}

void PlainKernels::undo_offset(const OffsetCall& call) {
  for (std::int64_t i = 0; i < call.columns; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      double& entry = call.packed[i * (i + 1) / 2 + j];
      entry = offset_undone(call, entry, i, j);
    }
  }
}

void PlainKernels::check(const std::uint64_t* greatest, std::int64_t columns, Range range, std::int32_t* flag) {
  for (std::int64_t j = 0; j < columns; ++j) {
    if (!fits_range(greatest[j], range)) *flag = 1;
  }
}

void PlainKernels::redo(const Block& block, ColumnMap map, const std::int32_t* flag, double* packed) {
  if (*flag == 0) return;
  ++redone;
  const std::vector<long double> product = host::reference_cross_product(block, map);
  std::transform(product.begin(), product.end(), packed, [](long double v) { return static_cast<double>(v); });
}

ReplayedProduct replay_product(const Block& block, ColumnMap map, const ProductChoice& choice, int compute_capability,
                               const ProductLimits& limits) {
  const std::int64_t columns = column_count(block.x);
  const ProductScratch at = product_scratch(columns, choice.precision, limits);
  // addresses of 256 bytes; not all of it is touched
  const auto bytes = static_cast<std::size_t>(at.total);
  std::unique_ptr<std::byte, decltype(&std::free)> memory(static_cast<std::byte*>(std::aligned_alloc(256, bytes)),
                                                          &std::free);
  std::byte* const scratch = memory.get();
  const ProductPlan plan(row_count(block.x), columns, choice, limits);
  std::memset(scratch + at.work, 0xff, static_cast<std::size_t>(std::min(plan.work_bytes() + 64, at.sums - at.work)));
  std::memset(scratch + at.sums, 0xff,
              static_cast<std::size_t>(std::min(plan.sums_bytes() + 64, at.greatest - at.sums)));
  std::memset(scratch + at.greatest, 0xff, static_cast<std::size_t>(at.total - at.greatest));
  RecordingBlas blas({scratch + at.work, scratch + at.sums}, {scratch + at.sums, scratch + at.greatest},
                     compute_capability, true);
  PlainKernels kernels;
  ReplayedProduct result;
  result.packed.assign(static_cast<std::size_t>(columns * (columns + 1) / 2), -7.5);
  run_product(block, map, choice, compute_capability, scratch, result.packed.data(), kernels, blas, limits);
  result.gemms = std::move(blas.gemms);
  result.syrks = std::move(blas.syrks);
  result.redone = kernels.redone > 0;
  return result;
}

}  // namespace rowmill::test
