#include "engine/combine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "comm/world.hpp"

namespace rowmill {
namespace {

class CombineRanks : public testing::Test {
 protected:
  int argc_ = 0;
  char** argv_ = nullptr;
  World world_{argc_, argv_, std::chrono::seconds(20)};
  Communicator& ranks_ = world_.communicator();
};

PartialLayout test_layout() {
  PartialLayout layout;
  layout.add("n", ElementKind::i64, Combine::sum, 3).add("first", ElementKind::i64, Combine::min, 2);
  layout.add("low", ElementKind::f64, Combine::min, 2).add("high", ElementKind::f64, Combine::max, 2);
  layout.add("sum", ElementKind::binned, Combine::sum, 1001).add_scratch("scratch", 7);
  return layout;
}

/// Term k of element i, over 60 binades and both signs; the same on every rank.
double term(std::int64_t k, std::int64_t i) {
  std::mt19937_64 random(static_cast<std::uint64_t>(k * 1009 + i));
  const double mantissa = std::uniform_real_distribution<double>(-1, 1)(random);
  return std::ldexp(mantissa, static_cast<int>(random() % 60));
}

void add_term(HostPartial& partial, std::int64_t k) {
  const PartialView view = partial.view();
  std::vector<double> values(1001);
  for (std::int64_t i = 0; i < 1001; ++i) values[static_cast<std::size_t>(i)] = term(k, i);
  if (k == 5) values[1] = std::numeric_limits<double>::infinity();
  if (k == 6) values[1] = -std::numeric_limits<double>::infinity();
  if (k == 7) values[2] = std::numeric_limits<double>::infinity();
  binned_add_reference(view.binned("sum"), values.data());
  view.i64("n")[1] += k;
  view.i64("first")[0] = std::min(view.i64("first")[0], k);
  view.f64("low")[1] = std::min(view.f64("low")[1], static_cast<double>(-k));
  view.f64("high")[0] = std::max(view.f64("high")[0], static_cast<double>(k));
}

TEST_F(CombineRanks, OfTermsDealtAmongRanks_GivesTheBitsOfOneRank) {
  constexpr std::int64_t terms = 23;
  HostPartial alone(test_layout()), mine(test_layout());
  for (std::int64_t k = 0; k < terms; ++k) {
    add_term(alone, k);
    if (k % ranks_.size() == ranks_.rank()) add_term(mine, k);
  }
  combine_ranks(mine, ranks_);
  EXPECT_EQ(mine.integers("n"), alone.integers("n"));
  EXPECT_EQ(mine.integers("first"), alone.integers("first"));
  EXPECT_EQ(mine.doubles("low"), alone.doubles("low"));
  EXPECT_EQ(mine.doubles("high"), alone.doubles("high"));
  const auto a = mine.sums("sum"), b = alone.sums("sum");
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(double)), 0);
  EXPECT_TRUE(std::isnan(a[1]));
  EXPECT_EQ(a[2], std::numeric_limits<double>::infinity());
}

TEST_F(CombineRanks, OfNothing_IsNothing) {
  HostPartial mine(test_layout());
  combine_ranks(mine, ranks_);
  EXPECT_EQ(mine.sums("sum"), std::vector<double>(1001, 0.0));
  EXPECT_EQ(mine.integers("first")[0], std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace rowmill
