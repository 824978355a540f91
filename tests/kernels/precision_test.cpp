#include "kernels/precision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/rounding.hpp"

namespace rowmill {
namespace {

const char* const h200 = "NVIDIA H200";
constexpr double usual_rtol = 3e-5;

ProductModel model_of(DType type, bool shifted = false, int compute_capability = 90) {
  return {{type, false}, shifted, compute_capability};
}

std::vector<Precision> offered(DType type) {
  std::vector<Precision> all = all_precisions();
  if (type != DType::i8 && type != DType::u8) std::erase(all, Precision::int8);
  return all;
}

ProductChoice chosen(DType type, std::int64_t columns, double rtol, const char* device = h200, int capability = 90,
                     bool shifted = false) {
  return cheapest_product(model_of(type, shifted, capability), columns, rtol, device, offered(type));
}

/// Nearest by brute force: the two neighbours of the format around w, and the even one of a tie.
double nearest_by_search(double w, int bits, int least, int most) {
  if (!std::isfinite(w) || w == 0) return w;
  const int exponent = std::max(std::ilogb(w), least);
  const long double quantum = std::ldexp(1.0L, exponent - (bits - 1));
  const long double steps = std::abs(static_cast<long double>(w)) / quantum;
  long double whole = std::floor(steps);
  const long double rest = steps - whole;
  if (rest > 0.5L || (rest == 0.5L && std::fmod(whole, 2.0L) == 1)) whole += 1;
  const long double value = whole * quantum;
  const long double greatest = std::ldexp(2.0L - std::ldexp(1.0L, 1 - bits), most);
  const double magnitude = value > greatest ? std::numeric_limits<double>::infinity() : static_cast<double>(value);
  return std::copysign(magnitude, w);
}

/// A double of any magnitude around a format's ranges; ties and their neighbours often.
double awkward(std::mt19937_64& random, int bits) {
  const int exponent = static_cast<int>(random() % 340) - 170;
  double mantissa = 1 + static_cast<double>(random() % (1u << bits)) / (1u << bits);
  if (random() % 4 == 0) mantissa = std::nextafter(mantissa, random() % 2 == 0 ? 0 : 4);
  if (random() % 4 == 0) mantissa = 1 + static_cast<double>(random()) * 0x1p-64;
  return std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, random() % 2 == 0 ? exponent : exponent / 8);
}

TEST(Rounding, IsToNearestEven_InEveryFormat) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200000; ++i) {
    const double eleven = awkward(random, 11), eight = awkward(random, 8);
    ASSERT_EQ(rounded_to_half(eleven), nearest_by_search(eleven, 11, -14, 15)) << eleven << " seed " << seed;
    ASSERT_EQ(rounded_to_tf32(eleven), nearest_by_search(eleven, 11, -126, 127)) << eleven << " seed " << seed;
    ASSERT_EQ(rounded_to_bf16(eight), nearest_by_search(eight, 8, -126, 127)) << eight << " seed " << seed;
  }
}

TEST(Rounding, KeepsSpecialValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto round : {rounded_to_half, rounded_to_tf32, rounded_to_bf16}) {
    EXPECT_TRUE(std::isnan(round(std::nan(""))));
    EXPECT_EQ(round(infinity), infinity);
    EXPECT_EQ(round(-infinity), -infinity);
    EXPECT_EQ(round(1e300), infinity);
    EXPECT_TRUE(std::signbit(round(-0.0)));
    EXPECT_EQ(round(5e-324), 0);
  }
  EXPECT_EQ(rounded_to_half(65504), 65504);
  EXPECT_EQ(rounded_to_half(65519.9), 65504);
  EXPECT_EQ(rounded_to_half(65520), infinity);
  EXPECT_EQ(rounded_to_half(0x1p-24), 0x1p-24);
  EXPECT_EQ(rounded_to_half(0x1p-25), 0);
  EXPECT_EQ(rounded_to_half(0x1.8p-25), 0x1p-24);
}

TEST(Rounding, BitsOfHalvesAndBfloats_AreThoseOfTheStandard) {
  EXPECT_EQ(half_bits(1), 0x3c00);
  EXPECT_EQ(half_bits(-2), 0xc000);
  EXPECT_EQ(half_bits(65504), 0x7bff);
  EXPECT_EQ(half_bits(0x1p-24), 0x0001);
  EXPECT_EQ(half_bits(0x1p-14), 0x0400);
  EXPECT_EQ(half_bits(1023 * 0x1p-24), 0x03ff);
  EXPECT_EQ(half_bits(std::numeric_limits<double>::infinity()), 0x7c00);
  EXPECT_EQ(half_bits(std::nan("")) & 0x7fff, 0x7e00);
  EXPECT_EQ(half_bits(-0.0), 0x8000);
  EXPECT_EQ(bf16_bits(1), 0x3f80);
  EXPECT_EQ(bf16_bits(-0x1.7ep3), 0xc13f);
  EXPECT_TRUE(std::isnan(same_bits<float>(static_cast<std::uint32_t>(bf16_bits(std::nan(""))) << 16)));
}

TEST(Rounding, TwoBf16_LeaveLessThanTheBoundSays) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const double w = std::ldexp(awkward(random, 17), 0);
    if (std::abs(w) < 0x1p-60 || std::abs(w) > 0x1p60) continue;
    const TwoBf16 parts = split_bf16(w);
    worst = std::max(worst, std::abs(w - parts.high - parts.low) / std::abs(w));
  }
  EXPECT_LE(worst, 0x1p-17) << "seed " << seed;
  EXPECT_GT(worst, 0x1p-18);
}

TEST(RoundingBound, IsZeroWhereStoredValuesAreExact) {
  const auto exact = [](Precision precision, DType type) { return rounding_bound(precision, model_of(type)) == 0; };
  EXPECT_TRUE(exact(Precision::fp16, DType::f16));
  EXPECT_TRUE(exact(Precision::tf32, DType::f16));
  EXPECT_TRUE(exact(Precision::bf16, DType::u8));
  EXPECT_TRUE(exact(Precision::bf16x3, DType::i16));
  EXPECT_TRUE(exact(Precision::int8, DType::i8));
  EXPECT_FALSE(exact(Precision::bf16, DType::f16));
  EXPECT_FALSE(exact(Precision::fp16, DType::bf16));
  EXPECT_FALSE(exact(Precision::bf16x3, DType::f32));
  EXPECT_FALSE(exact(Precision::fp32, DType::i32));
  EXPECT_GT(rounding_bound(Precision::fp16, model_of(DType::f16, true)), 0) << "a shift leaves the stored values";
  // every 16-bit integer is H + L
  for (int i = -32768; i < 65536; ++i) {
    const TwoBf16 parts = split_bf16(i);
    ASSERT_EQ(parts.high + parts.low, i);
  }
}

/// Squares of values just above 1, where a unit of roundoff is largest.
TEST(RoundingBound, IsReachedByTheWorstFactors) {
  const auto worst_square = [](double (*round)(double), double step) {
    double worst = 0;
    for (int i = 0; i < 4096; ++i) {
      const double w = 1 + i * step, factor = round(w);
      worst = std::max(worst, std::abs(factor * factor - w * w) / (w * w));
    }
    return worst;
  };
  const auto split = [](double w) {
    const TwoBf16 parts = split_bf16(w);
    return parts.high + parts.low;
  };
  const auto expect_close = [](double worst, Precision precision) {
    const double bound = rounding_bound(precision, model_of(DType::f64));
    EXPECT_LE(worst, bound) << name_of(precision);
    EXPECT_GT(worst, 0.97 * bound) << name_of(precision);
  };
  expect_close(worst_square(rounded_to_float, 0x1p-30), Precision::fp32);
  expect_close(worst_square(rounded_to_tf32, 0x1p-20), Precision::tf32);
  expect_close(worst_square(rounded_to_half, 0x1p-20), Precision::fp16);
  expect_close(worst_square(rounded_to_bf16, 0x1p-18), Precision::bf16);
  expect_close(worst_square(split, 0x1p-20), Precision::bf16x3);
}

TEST(ProductBound, OfHosts_IsWhatItWas) {
  EXPECT_EQ(product_bound({Precision::fp32, slab_rows}, model_of(DType::f32, false, 0), 5000), fp32_product_bound);
  EXPECT_EQ(product_bound({Precision::fp64, slab_rows}, model_of(DType::f32, false, 0), 5000), 5003 * 0x1p-53);
  EXPECT_EQ(product_bound({Precision::int8, int8_chain_rows}, model_of(DType::u8), 5000), 5003 * 0x1p-53);
}

TEST(ProductBound, GrowsWithTheChain_AndWithOlderTensorCores) {
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16, Precision::bf16x3}) {
    double before = 0;
    for (const std::int64_t rows : chain_ladder) {
      const double bound = product_bound({precision, rows}, model_of(DType::f32), 4096);
      EXPECT_GT(bound, before);
      EXPECT_GT(product_bound({precision, rows}, model_of(DType::f32, false, 80), 4096), bound);
      EXPECT_EQ(product_bound({precision, rows}, model_of(DType::f32, false, 999), 4096),
                product_bound({precision, rows}, model_of(DType::f32, false, 80), 4096))
          << "what is not known is no better than A100";
      before = bound;
    }
  }
}

TEST(ChainRows, AreTheLongestThatMeetRtol) {
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16, Precision::bf16x3}) {
    for (const DType type : {DType::f32, DType::f16, DType::u8}) {
      for (double rtol = 1e-6; rtol < 1; rtol *= 1.3) {
        const std::int64_t rows = chain_rows_within(precision, model_of(type), rtol);
        for (const std::int64_t rung : chain_ladder) {
          const bool meets = product_bound({precision, rung}, model_of(type), 1 << 20) <= rtol;
          EXPECT_EQ(meets, rung <= rows) << name_of(precision) << " " << rtol;
        }
      }
    }
  }
}

TEST(ChainRows, OfTheUsualRtol) {
  EXPECT_EQ(chain_rows_within(Precision::bf16x3, model_of(DType::f32), usual_rtol), 320);
  EXPECT_EQ(chain_rows_within(Precision::fp16, model_of(DType::f16), usual_rtol), 512);
  EXPECT_EQ(chain_rows_within(Precision::fp16, model_of(DType::f32), usual_rtol), 0);
  EXPECT_EQ(chain_rows_within(Precision::tf32, model_of(DType::f32), usual_rtol), 0);
  EXPECT_EQ(chain_rows_within(Precision::bf16, model_of(DType::f32), 4e-3), 0) << "two factors of 2^-8 each";
  EXPECT_EQ(chain_rows_within(Precision::bf16, model_of(DType::f32), 1e-2), 4096);
  EXPECT_EQ(chain_rows_within(Precision::fp32, model_of(DType::f32), usual_rtol), slab_rows);
  EXPECT_EQ(chain_rows_within(Precision::fp32, model_of(DType::f32), 1e-6), 0);
  EXPECT_EQ(chain_rows_within(Precision::int8, model_of(DType::u8), 0), int8_chain_rows);
}

TEST(CheapestProduct, OnAnH200_IsFp64WhereItHidesBehindTheBus) {
  for (const std::int64_t columns : {1, 100, 1000, 2500}) {
    EXPECT_EQ(chosen(DType::f32, columns, 1e-2).precision, Precision::fp64) << columns;
  }
  EXPECT_EQ(chosen(DType::f32, 8192, 1e-2).precision, Precision::bf16);
  EXPECT_EQ(chosen(DType::f32, 8192, 2e-3).precision, Precision::tf32);
  EXPECT_EQ(chosen(DType::f32, 8192, usual_rtol).precision, Precision::bf16x3);
  EXPECT_EQ(chosen(DType::f32, 8192, 1e-6).precision, Precision::fp64);
  EXPECT_EQ(chosen(DType::f64, 65536, 1e-2).precision, Precision::fp64);
  EXPECT_EQ(chosen(DType::i64, 65536, 1e-2).precision, Precision::fp64);
}

TEST(CheapestProduct, PrefersWhatIsExact) {
  EXPECT_EQ(chosen(DType::u8, 4096, usual_rtol).precision, Precision::int8);
  EXPECT_EQ(chosen(DType::i8, 4096, 0).precision, Precision::int8);
  EXPECT_EQ(chosen(DType::i8, 4096, usual_rtol, h200, 90, true).precision, Precision::int8);
  EXPECT_EQ(chosen(DType::f16, 8192, usual_rtol).precision, Precision::fp16);
  EXPECT_EQ(chosen(DType::bf16, 8192, usual_rtol).precision, Precision::bf16);
  EXPECT_EQ(chosen(DType::f16, 8192, 1e-2).precision, Precision::fp16) << "bf16 would be as fast, but rounds";
  EXPECT_EQ(chosen(DType::f16, 8192, usual_rtol, h200, 90, true).precision, Precision::bf16x3);
}

TEST(CheapestProduct, OnDevicesOfWeakFp64_LeavesItEarly) {
  EXPECT_NE(chosen(DType::f32, 1024, usual_rtol, "NVIDIA L40S", 89).precision, Precision::fp64);
  EXPECT_EQ(chosen(DType::f32, 1024, 1e-7, "NVIDIA L40S", 89).precision, Precision::fp64);
  EXPECT_EQ(chosen(DType::f32, 10, usual_rtol, "NVIDIA L40S", 89).precision, Precision::fp64);
}

TEST(CheapestProduct, MeetsRtol_AndIsNeverDearerThanFp64) {
  for (const int capability : {75, 80, 86, 89, 90, 100, 120, 200}) {
    const DeviceRates rates = device_rates("?", capability);
    for (const DType type :
         {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i16, DType::i32}) {
      for (const std::int64_t columns : {1, 300, 1024, 3000, 10000, 65536}) {
        for (const double rtol : {0.0, 1e-6, usual_rtol, 1e-3, 1e-2}) {
          for (const bool shifted : {false, true}) {
            const ProductChoice choice = chosen(type, columns, rtol, "?", capability, shifted);
            EXPECT_LE(product_seconds(choice, rates, columns), product_seconds({}, rates, columns));
            if (choice.precision == Precision::fp64 || choice.precision == Precision::int8) continue;
            EXPECT_LE(product_bound(choice, model_of(type, shifted, capability), 8192), rtol);
          }
        }
      }
    }
  }
}

TEST(DeviceRates, AreThoseOfTheName_ElseOfTheCapability) {
  EXPECT_GT(device_rates(h200, 90).memory, device_rates("NVIDIA H100 80GB HBM3", 90).memory);
  EXPECT_EQ(device_rates("?", 90).memory, device_rates("NVIDIA H100 80GB HBM3", 90).memory);
  EXPECT_EQ(device_rates("?", 80).fp64, device_rates("NVIDIA A100-SXM4-80GB", 80).fp64);
  EXPECT_GT(device_rates("?", 999).fp64, 0);
}

}  // namespace
}  // namespace rowmill
