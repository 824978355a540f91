#include "core/partial.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/error.hpp"

namespace rowmill {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

PartialLayout small_layout() {
  PartialLayout layout;
  layout.add("sum", ElementKind::binned, Combine::sum, 5)
      .add_scratch("work", 7)
      .add("count", ElementKind::i64, Combine::sum, 3)
      .add("first", ElementKind::i64, Combine::min, 1)
      .add("last", ElementKind::i64, Combine::max, 1)
      .add("least", ElementKind::f64, Combine::min, 3)
      .add("most", ElementKind::f64, Combine::max, 3)
      .add_scratch_bytes("slab", 100)
      .add("flag", ElementKind::i8, Combine::max, 2);
  return layout;
}

void fill(HostPartial& partial, std::int64_t number) {
  const PartialView view = partial.view();
  const std::vector<double> values = {0.1 * static_cast<double>(number), -1e300, 1e-300, 3.0, infinity};
  binned_add_reference(view.binned("sum"), values.data());
  for (int i = 0; i < 3; ++i) view.i64("count")[i] += number + i;
  view.i64("first")[0] = number;
  view.i64("last")[0] = number;
  for (int i = 0; i < 3; ++i) view.f64("least")[i] = view.f64("most")[i] = static_cast<double>(number * (i - 1));
  static_cast<std::int8_t*>(view.raw("flag"))[1] = static_cast<std::int8_t>(number % 2);
}

TEST(PartialLayout, Blocks_AreAlignedAndApart_CombinedOnesFirst) {
  const PartialLayout layout = small_layout();
  std::vector<int> owner(layout.total_bytes(), -1);
  int number = 0;
  for (const PartialBlock& block : layout.blocks()) {
    const std::size_t offset = layout.offset(block);
    EXPECT_EQ(offset % 64, 0u) << block.name;
    EXPECT_EQ(offset >= layout.combined_bytes(), block.combine == Combine::none) << block.name;
    for (std::size_t i = offset; i < offset + block.bytes; ++i) {
      ASSERT_LT(i, owner.size());
      ASSERT_EQ(owner[i], -1) << block.name << " overlaps another block";
      owner[i] = number;
    }
    ++number;
  }
  EXPECT_EQ(layout.block("sum").bytes, 5u * 27u);
  EXPECT_EQ(layout.block("work").bytes, 56u);
  EXPECT_EQ(layout.block("slab").bytes, 100u);
}

TEST(PartialLayout, Add_RefusesWhatDependsOnOrderAndNamesUsedTwice) {
  PartialLayout layout;
  EXPECT_THROW(layout.add("a", ElementKind::f64, Combine::sum, 1), std::invalid_argument);
  EXPECT_THROW(layout.add("a", ElementKind::binned, Combine::min, 1), std::invalid_argument);
  EXPECT_THROW(layout.add("a", ElementKind::i64, Combine::sum, -1), std::invalid_argument);
  EXPECT_TRUE(layout.blocks().empty());
  layout.add("a", ElementKind::i64, Combine::sum, 1);
  EXPECT_THROW(layout.add("a", ElementKind::f64, Combine::max, 1), std::invalid_argument);
  EXPECT_THROW(layout.add_scratch("a", 1), std::invalid_argument);
  EXPECT_THROW(layout.block("b"), std::out_of_range);
}

TEST(HostPartial, New_IsTheSumOfNothing) {
  HostPartial partial(small_layout());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(partial.view().memory()) % 64, 0u);
  EXPECT_EQ(partial.sums("sum"), std::vector<double>(5, 0.0));
  EXPECT_EQ(partial.integers("count"), std::vector<std::int64_t>(3, 0));
  EXPECT_EQ(partial.integers("first")[0], std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(partial.integers("last")[0], std::numeric_limits<std::int64_t>::lowest());
  EXPECT_EQ(partial.doubles("least"), std::vector<double>(3, infinity));
  EXPECT_EQ(partial.doubles("most"), std::vector<double>(3, -infinity));
  EXPECT_EQ(partial.integers("flag"), std::vector<std::int64_t>(2, -128));
  EXPECT_THROW(partial.sums("count"), std::logic_error);
  EXPECT_THROW(partial.doubles("sum"), std::logic_error);
  EXPECT_THROW(partial.integers("least"), std::logic_error);
}

TEST(HostPartial, Merge_CombinesEachBlockInItsWay) {
  HostPartial a(small_layout()), b(small_layout());
  fill(a, 4);
  fill(b, 7);
  a.merge(b);
  const std::vector<double> sums = a.sums("sum");
  EXPECT_EQ(sums[0], 0.4 + 0.7000000000000001);
  EXPECT_EQ(sums[1], -2e300);
  EXPECT_EQ(sums[3], 6.0);
  EXPECT_EQ(sums[4], infinity);
  EXPECT_EQ(a.integers("count"), (std::vector<std::int64_t>{11, 13, 15}));
  EXPECT_EQ(a.integers("first")[0], 4);
  EXPECT_EQ(a.integers("last")[0], 7);
  EXPECT_EQ(a.doubles("least"), (std::vector<double>{-7, 0, 4}));
  EXPECT_EQ(a.doubles("most"), (std::vector<double>{-4, 0, 7}));
  EXPECT_EQ(a.integers("flag"), (std::vector<std::int64_t>{-128, 1}));
}

TEST(HostPartial, Merge_WithTheSumOfNothing_ChangesNothing) {
  HostPartial a(small_layout()), nothing(small_layout());
  fill(a, 9);
  const std::vector<std::byte> before = a.serialise();
  a.merge(nothing);
  EXPECT_EQ(a.serialise(), before);
}

TEST(HostPartial, Deserialise_GivesBackTheSameBytes) {
  HostPartial a(small_layout()), b(small_layout());
  fill(a, 3);
  const std::vector<std::byte> bytes = a.serialise();
  b.deserialise(bytes);
  EXPECT_EQ(b.serialise(), bytes);
  EXPECT_EQ(b.integers("count"), (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(b.sums("sum")[3], 3.0);
}

TEST(HostPartial, Deserialise_RefusesDamage) {
  HostPartial a(small_layout());
  fill(a, 3);
  const std::vector<std::byte> bytes = a.serialise();
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= static_cast<std::byte>(1u << (random() % 8));
    HostPartial b(small_layout());
    ASSERT_THROW(b.deserialise(damaged), Error) << "byte " << i << " seed " << seed;
    ASSERT_EQ(b.integers("count")[0], 0) << "a refused partial was taken in";
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    HostPartial b(small_layout());
    ASSERT_THROW(b.deserialise({bytes.data(), size}), Error) << size;
  }
}

TEST(HostPartial, Deserialise_RefusesAnotherLayout) {
  HostPartial a(small_layout());
  PartialLayout other;
  other.add("sum", ElementKind::binned, Combine::sum, 6);
  HostPartial b(other);
  try {
    b.deserialise(a.serialise());
    FAIL() << "taken in";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::input);
  }
}

TEST(SetNeutral, OverwritesCombinedBlocksOnly) {
  const PartialLayout layout = small_layout();
  std::vector<std::byte> memory(layout.total_bytes(), std::byte{0x5a});
  set_neutral(layout, memory.data());
  HostPartial fresh(layout);
  EXPECT_EQ(std::memcmp(memory.data(), fresh.combined().data(), layout.combined_bytes()), 0);
  for (std::size_t i = layout.combined_bytes(); i < memory.size(); ++i) ASSERT_EQ(memory[i], std::byte{0x5a});
}

}  // namespace
}  // namespace rowmill
