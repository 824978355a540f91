#include "core/binned.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/sanitized.hpp"

namespace rowmill {
namespace {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double denormal = std::numeric_limits<double>::denorm_min();

std::uint64_t fresh_seed() {
  return std::random_device{}();
}

/// Accumulators with their memory.
class Sums {
 public:
  explicit Sums(std::int64_t count) : count_(count), memory_((binned_bytes(count) + 7) / 8, 0) {}
  BinnedView view() { return binned_view(memory_.data(), count_); }
  void add(const std::vector<double>& values) { binned_add_reference(view(), values.data()); }
  std::vector<double> rounded() {
    std::vector<double> out(static_cast<std::size_t>(count_), -777.0);
    binned_round(view(), out);
    return out;
  }
  friend bool operator==(const Sums&, const Sums&) = default;

 private:
  std::int64_t count_;
  std::vector<std::int64_t> memory_;
};

double sum_of(const std::vector<double>& terms) {
  Sums sums(1);
  for (const double term : terms) sums.add({term});
  return sums.rounded()[0];
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// A sum of doubles without any error: a fixed-point number of 2^-1074 · (2200 bits), as base 2^32 limbs, signed by
/// limb.
class ExactSum {
 public:
  void add(double value) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    std::int64_t mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 53));
    int position = exponent - 53 + 1074;
    if (position < 0) {
      mantissa /= std::int64_t{1} << -position;  // subnormals: the bits shifted out are zero
      position = 0;
    }
    const Int128 wide = static_cast<Int128>(mantissa) * (std::int64_t{1} << (position % 32));
    const bool negative = wide < 0;
    UInt128 rest = static_cast<UInt128>(negative ? -wide : wide);
    for (std::size_t limb = static_cast<std::size_t>(position / 32); rest != 0; ++limb, rest >>= 32) {
      const auto digit = static_cast<std::int64_t>(static_cast<std::uint64_t>(rest) & 0xffffffffu);
      limbs_[limb] += negative ? -digit : digit;
    }
  }

  /// The exact sum minus `value`, relative to 2^(exponent): small numbers come out right to some digits.
  long double minus(double value) const {
    ExactSum difference = *this;
    difference.add(-value);
    return difference.approximate();
  }

  /// With carries resolved and the sign pulled out, the leading 64 bits and more.
  long double approximate() const {
    std::vector<std::int64_t> limbs = limbs_;
    carry(limbs);
    const bool negative = limbs.back() < 0;
    if (negative) {
      for (std::int64_t& limb : limbs) limb = -limb;
      carry(limbs);
    }
    long double result = 0;
    for (std::size_t i = limbs.size(); i-- > 0;) {
      result += std::ldexp(static_cast<long double>(limbs[i]), 32 * static_cast<int>(i) - 1074);
    }
    return negative ? -result : result;
  }

 private:
  static void carry(std::vector<std::int64_t>& limbs) {
    for (std::size_t i = 0; i + 1 < limbs.size(); ++i) {
      const std::int64_t up = limbs[i] >> 32;
      limbs[i] -= up * (std::int64_t{1} << 32);
      limbs[i + 1] += up;
    }
  }
  std::vector<std::int64_t> limbs_ = std::vector<std::int64_t>(72, 0);
};

/// Any finite double: every exponent is as likely as any other, some are zeros, subnormals and powers of two.
double any_double(std::mt19937_64& random) {
  const std::uint64_t kind = random() % 16;
  std::uint64_t bits = random();
  if (kind == 0) bits &= 0x800fffffffffffffu;  // subnormal
  if (kind == 1) bits &= 0xfff0000000000000u;  // power of two
  if (kind == 2) bits &= 0x8000000000000000u;  // ±0
  const double value = std::bit_cast<double>(bits);
  return std::isfinite(value) ? value : 1.0;
}

/// Doubles whose exponents lie within `spread` of each other.
std::vector<double> some_terms(std::mt19937_64& random, int count, int spread) {
  const int middle = static_cast<int>(random() % 1800) - 900;
  std::vector<double> terms;
  for (int i = 0; i < count; ++i) {
    const int exponent =
        std::clamp(middle + static_cast<int>(random() % static_cast<unsigned>(spread + 1)), -1130, 970);
    const double fraction = 1.0 + static_cast<double>(random() >> 12) * 0x1p-52;
    terms.push_back(std::ldexp((random() & 1) != 0 ? fraction : -fraction, exponent));
  }
  return terms;
}

TEST(Binned, OfOneTerm_IsThatTerm) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 40000; ++i) {
    const double value = any_double(random);
    ASSERT_TRUE(same_bits(sum_of({value}), value == 0 ? 0.0 : value)) << "seed " << seed << " value " << value;
  }
  for (const double value : {denormal, -denormal, 0x1p-1022, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023}) {
    EXPECT_TRUE(same_bits(sum_of({value}), value)) << value;
  }
}

TEST(Binned, AddAndMerge_InAnyOrderAndGrouping_GiveTheSameBytes) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(60); ++round) {
    const std::size_t count = 1 + random() % 9, terms = 1 + random() % 50;
    std::vector<std::vector<double>> values(terms, std::vector<double>(count));
    for (auto& row : values) {
      for (double& value : row) {
        value = any_double(random);
        if (random() % 97 == 0) value = (random() & 1) != 0 ? infinity : std::nan("");
      }
    }
    Sums straight(static_cast<std::int64_t>(count));
    for (const auto& row : values) straight.add(row);
    std::shuffle(values.begin(), values.end(), random);
    std::vector<Sums> lanes(1 + random() % 5, Sums(static_cast<std::int64_t>(count)));
    for (const auto& row : values) lanes[random() % lanes.size()].add(row);
    while (lanes.size() > 1) {
      std::swap(lanes[random() % lanes.size()], lanes.back());
      binned_merge(lanes[random() % (lanes.size() - 1)].view(), lanes.back().view());
      lanes.pop_back();
    }
    ASSERT_EQ(straight, lanes[0]) << "seed " << seed << " round " << round;
  }
}

TEST(Binned, MergeAfterAlign_IsAPlainSumOfDigits) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(200); ++round) {
    const std::vector<double> terms = some_terms(random, 40, 200);
    Sums whole(1), left(1), right(1);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      whole.add({terms[i]});
      (i % 3 == 0 ? left : right).add({terms[i]});
    }
    const std::int8_t top = std::max(left.view().top[0], right.view().top[0]);
    binned_align(left.view(), &top);
    binned_align(right.view(), &top);
    for (int k = 0; k < 3; ++k) left.view().digit(k)[0] += right.view().digit(k)[0];
    ASSERT_EQ(left, whole) << "seed " << seed;
  }
}

TEST(Binned, OfIntegers_IsTheExactInteger) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(200); ++round) {
    Sums sums(1);
    Int128 expected = 0;
    for (int i = 0; i < 500; ++i) {
      const std::int64_t term = (static_cast<std::int64_t>(random()) >> (11 + random() % 40));
      sums.add({static_cast<double>(term)});
      expected += term;
    }
    ASSERT_EQ(sums.rounded()[0], static_cast<double>(expected)) << "seed " << seed;
  }
}

// The promise of the header: each term is cut by less than 2^-64 of the greatest one; and then one rounding.
TEST(Binned, Sum_IsWithinItsBoundOfTheExactSum) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::rounds(300); ++round) {
    const int count = 1 + static_cast<int>(random() % 300), spread = static_cast<int>(random() % 160);
    const std::vector<double> terms = some_terms(random, count, spread);
    ExactSum exact;
    Sums sums(1);
    double greatest = 0;
    for (const double term : terms) {
      exact.add(term);
      sums.add({term});
      greatest = std::max(greatest, std::abs(term));
    }
    double hi = 0, lo = 0;
    binned_round2(sums.view(), {&hi, 1}, {&lo, 1});
    const long double bound = std::ldexp(static_cast<long double>(greatest), -64) * count;
    const long double error = exact.minus(hi) - static_cast<long double>(lo);
    ASSERT_LE(std::abs(error), bound + std::abs(static_cast<long double>(hi)) * 0x1p-105L) << "seed " << seed;
    ASSERT_TRUE(same_bits(hi, sums.rounded()[0]));
    ASSERT_EQ(hi + lo, hi) << "hi is not the nearest double; seed " << seed;
  }
}

TEST(Binned, Round_TiesToEven) {
  EXPECT_EQ(sum_of({1.0, 0x1p-53}), 1.0);
  EXPECT_EQ(sum_of({1.0 + 0x1p-52, 0x1p-53}), 1.0 + 0x1p-51);
  EXPECT_EQ(sum_of({1.0, 0x1p-53, 0x1p-63}), 1.0 + 0x1p-52);
  EXPECT_EQ(sum_of({-1.0, -0x1p-53, -0x1p-63}), -1.0 - 0x1p-52);
  EXPECT_EQ(sum_of({1.0, 0x1p-53, -0x1p-63}), 1.0);
  EXPECT_EQ(sum_of({0x1p52, 0.5}), 0x1p52);
  EXPECT_EQ(sum_of({0x1p52 + 1, 0.5}), 0x1p52 + 2);
}

TEST(Binned, Cancellation_LeavesWhatIsLeft) {
  EXPECT_EQ(sum_of({1e16, 1.0, -1e16}), 1.0);
  EXPECT_EQ(sum_of({1e308, 1e308, -1e308, -1e308}), 0.0);
  EXPECT_EQ(sum_of({1e308, 1e308, -1e308}), 1e308);
  EXPECT_EQ(sum_of({0.1, 0.2, -0.1, -0.2}), 0.0);
  EXPECT_TRUE(same_bits(sum_of({-0.0, -0.0}), 0.0));
}

TEST(Binned, Overflow_GivesAnInfinity) {
  EXPECT_EQ(sum_of({1e308, 1e308}), infinity);
  EXPECT_EQ(sum_of({-1.7e308, -1.7e308, -5.0}), -infinity);
  const double greatest = std::numeric_limits<double>::max();
  EXPECT_EQ(sum_of({greatest, 0x1p969}), greatest);
  EXPECT_EQ(sum_of({greatest, 0x1p970}), infinity);
}

TEST(Binned, Subnormals_AreExact) {
  EXPECT_EQ(sum_of({denormal, denormal, denormal}), 3 * denormal);
  EXPECT_EQ(sum_of({0x1p-1022, -denormal}), 0x1p-1022 - denormal);
  EXPECT_EQ(sum_of({0x1.8p-1022, 0x1.8p-1022, denormal}), 0x1.8p-1021);
  EXPECT_EQ(sum_of({0x1p-1022, 0x1p-1022, -denormal}), 0x1p-1021 - denormal);
  EXPECT_EQ(sum_of({1.0, denormal, -1.0}), 0.0) << "below the bound: truncated";
}

TEST(Binned, InfinitiesAndNaN_FollowIeee) {
  EXPECT_EQ(sum_of({1.0, infinity}), infinity);
  EXPECT_EQ(sum_of({-infinity, 1e308, 1e308}), -infinity);
  EXPECT_TRUE(std::isnan(sum_of({infinity, 3.0, -infinity})));
  EXPECT_TRUE(std::isnan(sum_of({std::nan(""), 3.0})));
  Sums left(1), right(1);
  left.add({infinity});
  right.add({-infinity});
  binned_merge(left.view(), right.view());
  EXPECT_TRUE(std::isnan(left.rounded()[0]));
}

// 2^31 terms of all ones in the digits are what an int64 must hold: reached by doubling.
TEST(Binned, TwoToThe31Terms_DoNotOverflow) {
  for (const double term : {0x1.fffffffffffffp-1, -0x1.fffffffffffffp-1, 0x1.fffffffffffffp42}) {
    Sums sums(1);
    sums.add({term});
    for (int i = 0; i < 31; ++i) {
      Sums copy = sums;
      binned_merge(sums.view(), copy.view());
    }
    EXPECT_EQ(sums.rounded()[0], std::ldexp(term, 31));
  }
}

}  // namespace
}  // namespace rowmill
