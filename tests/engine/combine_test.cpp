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
  std::unique_ptr<Backend> backend_ = make_async_host_backend();
  std::unique_ptr<Ops> ops_ = make_host_ops(*backend_);
  Queue queue_ = backend_->make_queue();

  /// By way of device memory.
  void combine(HostPartial& partial) {
    const DeviceBuffer memory(*backend_, partial.layout().total_bytes(), queue_);
    const PartialView view(partial.layout(), memory.data());
    backend_->copy(memory.data(), partial.combined().data(), partial.combined().size(), queue_);
    combine_ranks(view, *ops_, ranks_, queue_);
    backend_->copy(partial.combined().data(), memory.data(), partial.combined().size(), queue_);
    backend_->wait_host(backend_->record(queue_));
  }

  /// acc += other, both by way of device memory.
  void merge(HostPartial& acc, HostPartial& other) {
    const std::size_t bytes = acc.combined().size();
    const DeviceBuffer a(*backend_, acc.layout().total_bytes(), queue_),
        b(*backend_, acc.layout().total_bytes(), queue_);
    backend_->copy(a.data(), acc.combined().data(), bytes, queue_);
    backend_->copy(b.data(), other.combined().data(), bytes, queue_);
    merge_partials({acc.layout(), a.data()}, {acc.layout(), b.data()}, *ops_, queue_);
    backend_->copy(acc.combined().data(), a.data(), bytes, queue_);
    backend_->wait_host(backend_->record(queue_));
  }
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
  combine(mine);
  EXPECT_EQ(mine.integers("n"), alone.integers("n"));
  EXPECT_EQ(mine.integers("first"), alone.integers("first"));
  EXPECT_EQ(mine.doubles("low"), alone.doubles("low"));
  EXPECT_EQ(mine.doubles("high"), alone.doubles("high"));
  const auto a = mine.sums("sum"), b = alone.sums("sum");
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(double)), 0);
  EXPECT_TRUE(std::isnan(a[1]));
  EXPECT_EQ(a[2], std::numeric_limits<double>::infinity());
}

TEST_F(CombineRanks, MergedLanes_GiveTheBitsOfOne) {
  HostPartial alone(test_layout()), mine(test_layout()), other(test_layout());
  for (std::int64_t k = 0; k < 23; ++k) {
    add_term(alone, k);
    add_term(k % 3 == 0 ? mine : other, k);
  }
  merge(mine, other);
  const auto a = mine.combined(), b = alone.combined();
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0);
}

TEST_F(CombineRanks, OfNothing_IsNothing) {
  HostPartial mine(test_layout());
  combine(mine);
  EXPECT_EQ(mine.sums("sum"), std::vector<double>(1001, 0.0));
  EXPECT_EQ(mine.integers("first")[0], std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace rowmill
