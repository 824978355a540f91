// Sources walked together, and columns selected.
#include "io/source.hpp"

#include <numeric>

#include "tests/io/io_support.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill::test {
namespace {

std::vector<float> counting(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(CheckAligned, OfOtherRowsOrSparse_NamesBoth) {
  const auto x = MemorySource::dense<float>(4, 2, counting(8)), y = MemorySource::dense<float>(4, 1, counting(4));
  const auto longer = MemorySource::dense<float>(5, 1, counting(5));
  const auto sparse = MemorySource::csr<float>(1, {0, 0, 0, 0, 0}, {}, {});
  EXPECT_NO_THROW(check_aligned({x.get(), y.get(), y.get()}));
  EXPECT_NO_THROW(check_aligned({x.get(), nullptr, nullptr}));
  EXPECT_NO_THROW(check_aligned({sparse.get(), y.get(), nullptr}));
  const Error e = error_of([&] { check_aligned({x.get(), longer.get(), nullptr}); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_NE(std::string(e.what()).find("4 rows"), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("5: they"), std::string::npos) << e.what();
  EXPECT_EQ(error_of([&] { check_aligned({x.get(), nullptr, longer.get()}); }).code(), ExitCode::input);
  EXPECT_EQ(error_of([&] { check_aligned({x.get(), sparse.get(), nullptr}); }).code(), ExitCode::input);
}

TEST(SelectColumns, InAnyOrderAndRepeated_DeliversJustThese) {
  std::mt19937_64 random(fresh_seed());
  for (const DType dtype : {DType::u8, DType::f16, DType::i32, DType::f64}) {
    const ElementType type{dtype, size_of(dtype) > 1};
    const Model all = random_model(random, {37, 5}, type);
    const std::vector<std::int64_t> columns = {4, 0, 0, 2};
    Model wanted{{37, 4}, type, {}};
    for (std::int64_t i = 0; i < 37; ++i) {
      for (const std::int64_t j : columns) {
        const auto* at = all.bytes.data() + static_cast<std::size_t>(i * 5 + j) * all.width();
        wanted.bytes.insert(wanted.bytes.end(), at, at + all.width());
      }
    }
    auto inner = MemorySource::dense(type, 37, 5, all.bytes);
    inner->mutable_info().storage_chunk_rows = 7;
    const auto source = select_columns(std::move(inner), columns);
    EXPECT_EQ(source->info().columns, 4);
    EXPECT_TRUE(reads_as(*source, wanted, {0, 37}));
    EXPECT_TRUE(reads_as(*source, wanted, {3, 30}));
    EXPECT_TRUE(reads_as(*source, wanted, {36, 1}));
    EXPECT_TRUE(reads_as(*source, wanted, {5, 0}));
    EXPECT_GT(source->bytes_read(), 0);
  }
}

TEST(SelectColumns, OfMoreThanASlice_DeliversEveryRow) {
  const std::int64_t rows = 3000, columns = 200;
  const auto source = select_columns(MemorySource::dense<float>(rows, columns, counting(rows * columns)), {199, 1});
  const PoisonedBuffer buffer(source->bytes_for({0, rows}));
  const auto dense = std::get<DenseRows>(source->read({0, rows}, buffer.span()).rows);
  const auto* values = reinterpret_cast<const float*>(dense.data);
  for (std::int64_t i = 0; i < rows; ++i) {
    ASSERT_EQ(values[2 * i], static_cast<float>(i * columns + 199));
    ASSERT_EQ(values[2 * i + 1], static_cast<float>(i * columns + 1));
  }
}

TEST(SelectColumns, OfAMask_SelectsItToo) {
  auto inner = MemorySource::dense<float>(3, 3, counting(9));
  inner->set_mask({0, 0, 1, 0, 1, 0, 1, 0, 0});
  const auto source = select_columns(std::move(inner), {2, 1});
  const PoisonedBuffer buffer(source->bytes_for({1, 2}));
  const SourceRows got = source->read({1, 2}, buffer.span());
  ASSERT_TRUE(got.missing);
  EXPECT_EQ(got.missing->at(0, 0), 0);
  EXPECT_EQ(got.missing->at(0, 1), 1);
  EXPECT_EQ(got.missing->at(1, 0), 0);
  EXPECT_EQ(got.missing->at(1, 1), 0);
  EXPECT_TRUE(buffer.guard_is_whole());
}

TEST(SelectColumns, OfNamedColumns_CarriesTheirNames) {
  auto inner = MemorySource::dense<float>(1, 3, counting(3));
  inner->mutable_info().column_names = {"a", "b", "c"};
  EXPECT_EQ(select_columns(std::move(inner), {2, 0})->info().column_names, (std::vector<std::string>{"c", "a"}));
}

TEST(SelectColumns, ThatAreNotThere_IsAUsageError) {
  for (const std::vector<std::int64_t>& columns : {std::vector<std::int64_t>{3}, {-1}, {0, 99}, {}}) {
    const Error e = error_of([&] { select_columns(MemorySource::dense<float>(1, 3, counting(3)), columns); });
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

TEST(SelectColumns, CarriesTheErrorOfItsSource) {
  auto inner = MemorySource::dense<float>(10, 3, counting(30));
  inner->throw_at_row(6);
  const auto source = select_columns(std::move(inner), {1});
  const PoisonedBuffer buffer(source->bytes_for({0, 10}));
  EXPECT_EQ(error_of([&] { source->read({0, 10}, buffer.span()); }).row(), 6);
  EXPECT_NO_THROW(source->read({0, 6}, buffer.span()));
}

}  // namespace
}  // namespace rowmill::test
