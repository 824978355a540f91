// Missing values matched as they are stored, limits, scale and offset.
#include <cmath>
#include <limits>

#include "io/column_join_source.hpp"
#include "io/convention_source.hpp"
#include "tests/io/io_support.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill::test {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// What a source delivers, with NaN for missing values.
template <typename T>
std::vector<double> values_of(Source& source, RowRange rows) {
  const PoisonedBuffer buffer(source.bytes_for(rows));
  const SourceRows got = source.read(rows, buffer.span());
  EXPECT_TRUE(buffer.guard_is_whole());
  const auto& dense = std::get<DenseRows>(got.rows);
  EXPECT_EQ(dense.type, source.info().type);
  std::vector<double> values;
  for (std::int64_t i = 0; i < dense.rows; ++i) {
    for (std::int64_t j = 0; j < dense.columns; ++j) {
      const auto* at = dense.data + (i * dense.stride + j) * static_cast<std::int64_t>(sizeof(T));
      std::array<std::byte, sizeof(T)> bytes;
      std::copy_n(at, sizeof(T), bytes.begin());
      if (dense.type.swapped) std::reverse(bytes.begin(), bytes.end());
      const bool missing = got.missing && got.missing->at(i, j) != 0;
      values.push_back(missing ? kNone : static_cast<double>(std::bit_cast<T>(bytes)));
    }
  }
  return values;
}

void expect_same(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else {
      EXPECT_EQ(got[i], want[i]) << i;
    }
  }
}

template <typename T>
std::unique_ptr<Source> source_of(std::int64_t columns, const std::vector<T>& values, const Conventions& conventions,
                                  bool swapped = false) {
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  return with_conventions(MemorySource::dense<T>(rows, columns, values, swapped), conventions);
}

TEST(Conventions, None_LeaveTheSourceAsItIs) {
  auto inner = MemorySource::dense<float>(1, 1, {1.0F});
  const Source* const before = inner.get();
  EXPECT_EQ(with_conventions(std::move(inner), {}).get(), before);
}

TEST(Conventions, MissingIntegers_AreMarkedAndKeepTheirType) {
  const Conventions rules{{Number::of(std::int64_t{-1}), Number::of(std::int64_t{7})}, {}, {}, {}, {}};
  for (const bool swapped : {false, true}) {
    const auto source = source_of<std::int16_t>(2, {0, -1, 7, 8, -1, 9}, rules, swapped);
    EXPECT_EQ(source->info().type, (ElementType{DType::i16, swapped}));
    expect_same(values_of<std::int16_t>(*source, {0, 3}), {0, kNone, kNone, 8, kNone, 9});
    expect_same(values_of<std::int16_t>(*source, {1, 1}), {kNone, 8});
    expect_same(values_of<std::int16_t>(*source, {2, 0}), {});
    EXPECT_GT(source->bytes_read(), 0);
  }
}

TEST(Conventions, BlockOfIntegersWithNoneMissing_HasNoMask) {
  const auto source = source_of<std::uint8_t>(1, {1, 2, 255}, {{Number::of(std::uint64_t{255})}, {}, {}, {}, {}});
  const PoisonedBuffer buffer(source->bytes_for({0, 3}));
  EXPECT_FALSE(source->read({0, 2}, buffer.span()).missing);
  EXPECT_TRUE(source->read({2, 1}, buffer.span()).missing);
}

TEST(Conventions, MissingFloats_BecomeNaNInTheStoredType) {
  // -999.9 is no float: what is stored is the float nearest to it
  const Conventions rules{{Number::of(-999.9)}, {}, {}, {}, {}};
  for (const bool swapped : {false, true}) {
    const auto source = source_of<float>(1, {1.5F, -999.9F, -999.0F}, rules, swapped);
    EXPECT_EQ(source->info().type, (ElementType{DType::f32, swapped}));
    expect_same(values_of<float>(*source, {0, 3}), {1.5, kNone, -999});
  }
}

TEST(Conventions, ScaleAndOffset_AreAppliedInFp64AfterMatching) {
  const Conventions rules{{Number::of(std::int64_t{-32767})}, {}, {}, 0.01, 273.15};
  const auto source = source_of<std::int16_t>(1, {0, -32767, 100, 3}, rules, true);
  EXPECT_EQ(source->info().type, (ElementType{DType::f64, false}));
  expect_same(values_of<double>(*source, {0, 4}), {273.15, kNone, 100 * 0.01 + 273.15, 3 * 0.01 + 273.15});
}

TEST(Conventions, ScaleOfManyRows_ReachesEachOfThem) {
  std::vector<std::int32_t> values(300000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
  const auto source = source_of<std::int32_t>(3, values, {{}, {}, {}, 0.5, {}});
  const std::vector<double> got = values_of<double>(*source, {1000, 90000});
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 0.5 * static_cast<double>(i + 3000));
}

TEST(Conventions, Limits_BoundWhatIsStored) {
  const Conventions rules{{}, Number::of(std::int64_t{2}), Number::of(std::uint64_t{4}), 10.0, {}};
  expect_same(values_of<double>(*source_of<std::uint8_t>(1, {1, 2, 3, 4, 5, 255}, rules), {0, 6}),
              {kNone, 20, 30, 40, kNone, kNone});
}

TEST(Conventions, LimitsBetweenOrBeyondIntegers_BoundAsNumbersDo) {
  const auto values = [](const Conventions& rules) {
    return values_of<std::uint8_t>(*source_of<std::uint8_t>(1, {0, 2, 3, 255}, rules), {0, 4});
  };
  expect_same(values({{}, Number::of(2.5), {}, {}, {}}), {kNone, kNone, 3, 255});
  expect_same(values({{}, {}, Number::of(2.5), {}, {}}), {0, 2, kNone, kNone});
  expect_same(values({{}, Number::of(std::int64_t{-5}), Number::of(std::int64_t{300}), {}, {}}), {0, 2, 3, 255});
  expect_same(values({{}, Number::of(std::int64_t{256}), {}, {}, {}}), {kNone, kNone, kNone, kNone});
  expect_same(values({{}, {}, Number::of(std::int64_t{-1}), {}, {}}), {kNone, kNone, kNone, kNone});
  expect_same(values({{}, Number::of(kNone), Number::of(kNone), {}, {}}), {0, 2, 3, 255});
}

TEST(Conventions, NumbersThatTheTypeDoesNotHold_MatchNothing) {
  const Conventions rules{
      {Number::of(std::int64_t{-1}), Number::of(256.0), Number::of(1.5), Number::of(1e300)}, {}, {}, {}, {}};
  expect_same(values_of<std::uint8_t>(*source_of<std::uint8_t>(1, {0, 1, 2, 255}, rules), {0, 4}), {0, 1, 2, 255});
  const Conventions wide{{Number::of(std::uint64_t{18446744073709551614U})}, {}, {}, {}, {}};
  expect_same(values_of<std::int64_t>(*source_of<std::int64_t>(1, {-2, 5}, wide), {0, 2}), {-2, 5});
}

TEST(Conventions, OfHalves_ComeAsFp64) {
  // 1.0, 2.0, -2.0 in binary16
  const std::vector<std::uint16_t> bits = {0x3c00, 0x4000, 0xc000};
  std::vector<std::byte> bytes(6);
  std::memcpy(bytes.data(), bits.data(), 6);
  const auto source = with_conventions(MemorySource::dense(ElementType{DType::f16, false}, 3, 1, bytes),
                                       {{Number::of(2.0)}, {}, {}, {}, {}});
  expect_same(values_of<double>(*source, {0, 3}), {1, kNone, -2});
}

TEST(JoinColumns, PutsEachBlockInItsPlaces) {
  InputPlan plan;
  plan.shape = {3, 3};
  plan.type = {DType::f64, false};
  InputPlan first = plan, second = plan;
  first.shape = {3, 2};
  first.places = {2, 0};
  second.shape = {3, 1};
  second.places = {1};
  plan.parts = {first, second};
  EXPECT_NO_THROW(check_columns_plan(plan));
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(MemorySource::dense<std::int32_t>(3, 2, {1, 2, 3, 4, 5, 6}, true));
  sources.push_back(MemorySource::dense<float>(3, 1, {0.5F, 1.5F, 2.5F}));
  const auto source = join_columns(plan, std::move(sources));
  expect_same(values_of<double>(*source, {0, 3}), {2, 0.5, 1, 4, 1.5, 3, 6, 2.5, 5});
  expect_same(values_of<double>(*source, {2, 1}), {6, 2.5, 5});
}

TEST(JoinColumns, OfBlocksThatDoNotFillTheWhole_IsRefused) {
  InputPlan plan;
  plan.shape = {3, 2};
  InputPlan part = plan;
  part.shape = {3, 1};
  part.places = {0};
  const auto refused = [&](const InputPlan& a, const InputPlan& b) {
    plan.parts = {a, b};
    return error_of([&] { check_columns_plan(plan); }).code() == ExitCode::input;
  };
  InputPlan other = part;
  EXPECT_TRUE(refused(part, other)) << "a place twice";
  other.places = {2};
  EXPECT_TRUE(refused(part, other)) << "beyond the columns";
  other.places = {1};
  other.shape = {4, 1};
  EXPECT_TRUE(refused(part, other)) << "other rows";
  other.places = {};
  EXPECT_TRUE(refused(part, other)) << "fewer places than columns";
}

}  // namespace
}  // namespace rowmill::test
