// The small operations, and that every operation goes through its queue.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>

#include "kernels/host/kernels.hpp"
#include "kernels/host/reference.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/random_block.hpp"
#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

using test::BlockShape;
using test::RandomBlock;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(NearestValues, AreTheReferences_InEveryTypeOrderMaskAndLayout) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(200); ++round) {
    const BlockShape shape = test::random_shape(random);
    const RandomBlock data(shape, random);
    std::vector<double> targets(shape.columns);
    for (double& target : targets) target = static_cast<double>(random() % 1000) / 8 - 60;  // ties are frequent
    const std::vector<double> expected = host::reference_nearest(data.block(), targets.data());
    test::for_each_target([&](const std::string&) {
      std::vector<double> out(shape.columns, -7.5);
      host::nearest_values(data.block(), targets.data(), out.data());
      ASSERT_EQ(out, expected) << test::describe(shape) << " seed " << seed;
    });
  }
}

TEST(NearestValues, PassOverInfinitiesAndNaN) {
  std::mt19937_64 random(1);
  RandomBlock data(test::plain_shape(3, 2, DType::f32), random);
  data.set(0, 0, infinity);
  data.set(1, 0, 1e30);
  data.set(2, 0, -infinity);
  for (int i = 0; i < 3; ++i) data.set(i, 1, i == 1 ? std::nan("") : infinity);
  const double targets[] = {0, 0};
  double out[] = {-7, -7};
  host::nearest_values(data.block(), targets, out);
  EXPECT_EQ(out[0], static_cast<double>(1e30f));
  EXPECT_EQ(out[1], 0.0);
}

double any_double(std::mt19937_64& random) {
  const std::uint64_t kind = random() % 12;
  std::uint64_t bits = random();
  if (kind == 0) bits &= 0x800fffffffffffffu;                                       // subnormal
  if (kind == 1) bits = (bits & 0x8000000000000000u);                               // ±0
  if (kind == 2) bits = (bits & 0x8000000000000000u) | std::uint64_t{0x7ff} << 52;  // infinite
  return std::bit_cast<double>(bits);
}

TEST(AddBinned, GivesTheBytesOfTheReference) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(300); ++round) {
    const auto count = static_cast<std::int64_t>(1 + random() % 40);
    const std::size_t words = binned_bytes(count) / 8 + 1;
    const int spread = static_cast<int>(random() % 4);
    std::vector<std::vector<double>> terms(20, std::vector<double>(count));
    for (auto& row : terms) {
      for (double& term : row) {
        term = spread == 0 ? any_double(random)
                           : std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())),
                                        -63 + static_cast<int>(random() % (40u * static_cast<unsigned>(spread))));
      }
    }
    std::vector<std::int64_t> expected(words, 0);
    for (const auto& row : terms) binned_add_reference(binned_view(expected.data(), count), row.data());
    test::for_each_target([&](const std::string&) {
      std::vector<std::int64_t> sums(words, 0);
      for (const auto& row : terms) host::add_binned(binned_view(sums.data(), count), row.data());
      ASSERT_EQ(sums, expected) << "seed " << seed << " round " << round;
    });
  }
}

/// Runs bodies only when told to, so that a test sees what was queued and where.
class HeldBackend final : public Backend {
 public:
  std::string name() const override { return "held"; }
  bool unified() const override { return true; }
  Queue make_queue() override { return {0}; }
  void* allocate(std::size_t, Queue) override { throw std::logic_error("an operation allocated"); }
  void release(void*, std::size_t, Queue) noexcept override {}
  void* allocate_staging(std::size_t) override { throw std::logic_error("an operation allocated"); }
  void release_staging(void*, std::size_t) noexcept override {}
  void copy(void*, const void*, std::size_t, Queue) override { throw std::logic_error("an operation copied"); }
  void clear(void*, std::size_t, Queue) override { throw std::logic_error("an operation cleared"); }
  void submit(Queue queue, std::function<void()> body) override {
    last_queue = queue.id;
    bodies.push_back(std::move(body));
  }
  Event record(Queue) override { return {}; }
  void wait(Queue, const Event&) override { throw std::logic_error("an operation waited"); }
  void wait_host(const Event&) override { throw std::logic_error("an operation waited"); }
  bool reached(const Event&) override { return true; }
  MemoryUse device_memory() const override { return {}; }
  MemoryUse staging_memory() const override { return {}; }

  void run_all() {
    for (auto& body : bodies) body();
    bodies.clear();
  }
  std::vector<std::function<void()>> bodies;
  int last_queue = -1;
};

TEST(HostOps, EveryOperationRunsOnItsQueueAndNotBefore) {
  HeldBackend backend;
  const auto ops = make_host_ops(backend);
  EXPECT_EQ(&ops->backend(), &backend);
  std::mt19937_64 random(1);
  RandomBlock data(test::plain_shape(5, 2, DType::f64), random);
  for (int i = 0; i < 5; ++i) {
    data.set(i, 0, i + 1);
    data.set(i, 1, -2);
  }
  std::int64_t first_missing = nothing_missing, inexact = 0, counts[] = {5, 6}, count[2], missing[2];
  const std::int64_t more[] = {1, 2};
  double sum[2] = {-7, -7}, second[2], min[2], max[2], nearest[2] = {-7, -7}, packed[3] = {-7, -7, -7};
  double low[] = {1, 4}, high[] = {1, 4};
  const double targets[] = {2.25, 0}, values[] = {3, 3};
  std::vector<std::int64_t> sums(binned_bytes(2) / 8 + 1, 0);
  std::vector<std::byte> scratch(ops->cross_product_scratch({DType::f64, false}, 2, Precision::fp64));
  ops->inspect(data.block(), &first_missing, &inexact, {11});
  EXPECT_EQ(backend.last_queue, 11);
  ops->column_moments(data.block(), {}, {count, missing, sum, second, min, max}, {12});
  EXPECT_EQ(backend.last_queue, 12);
  ops->nearest_values(data.block(), targets, nearest, {13});
  EXPECT_EQ(backend.last_queue, 13);
  ops->cross_product(data.block(), {}, Precision::fp64, scratch.data(), packed, {14});
  EXPECT_EQ(backend.last_queue, 14);
  ops->add_binned(binned_view(sums.data(), 2), values, {15});
  EXPECT_EQ(backend.last_queue, 15);
  ops->add(counts, more, 2, {16});
  EXPECT_EQ(backend.last_queue, 16);
  ops->keep_min(low, values, 2, {17});
  EXPECT_EQ(backend.last_queue, 17);
  ops->keep_max(high, values, 2, {18});
  EXPECT_EQ(backend.last_queue, 18);
  std::int64_t least[] = {1, 4}, greatest[] = {1, 4};
  ops->keep_min(least, more, 2, {19});
  EXPECT_EQ(backend.last_queue, 19);
  ops->keep_max(greatest, more, 2, {20});
  EXPECT_EQ(backend.last_queue, 20);
  std::vector<std::int64_t> merged(binned_bytes(2) / 8 + 1, 0);
  ops->merge_binned(binned_view(merged.data(), 2), binned_view(sums.data(), 2), {21});
  EXPECT_EQ(backend.last_queue, 21);
  const std::int8_t tops[] = {34, 35};
  ops->align_binned(binned_view(merged.data(), 2), tops, {22});
  EXPECT_EQ(backend.last_queue, 22);
  EXPECT_EQ(sum[0], -7);
  EXPECT_EQ(counts[0], 5);
  EXPECT_EQ(packed[2], -7);
  backend.run_all();
  EXPECT_EQ(first_missing, nothing_missing);
  EXPECT_EQ(sum[0], 15);
  EXPECT_EQ(nearest[0], 2);
  EXPECT_EQ(packed[0], 55);
  EXPECT_EQ(packed[1], -30);
  EXPECT_EQ(packed[2], 20);
  double total[2];
  binned_round(binned_view(sums.data(), 2), total);
  EXPECT_EQ(total[1], 3);
  EXPECT_EQ(counts[1], 8);
  EXPECT_EQ(low[0], 1);
  EXPECT_EQ(low[1], 3);
  EXPECT_EQ(high[0], 3);
  EXPECT_EQ(high[1], 4);
  EXPECT_EQ(least[0], 1);
  EXPECT_EQ(least[1], 2);
  EXPECT_EQ(greatest[0], 1);
  EXPECT_EQ(greatest[1], 4);
  binned_round(binned_view(merged.data(), 2), total);
  EXPECT_EQ(total[1], 3);
  EXPECT_EQ(binned_view(merged.data(), 2).top[0], 34);
  EXPECT_EQ(binned_view(merged.data(), 2).top[1], 35);
}

TEST(HostDeviceName, NamesProcessorAndKernels) {
  const std::string name = host_device_name();
  EXPECT_NE(name.find(", rowmill kernels "), std::string::npos) << name;
  EXPECT_GT(name.find(','), 3u) << name;
  EXPECT_EQ(name.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace rowmill
