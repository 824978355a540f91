// Sparse rows: pointers, indices and values as files hold them, made what kernels take; columns selected of them.
#include "io/sparse_source.hpp"

#include <map>
#include <numeric>
#include <thread>

#include "tests/io/io_support.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill::test {
namespace {

/// A sparse matrix as its three data sets.
template <typename Index, typename Value>
struct Parts {
  std::int64_t rows = 0, columns = 0;
  std::vector<Index> pointers, indices;
  std::vector<Value> values;
  bool by_columns = false, swapped = false;

  InputPlan plan() const {
    const auto part = [](std::size_t count, DType type) {
      InputPlan result;
      result.path = "f.h5";
      result.dataset = "/X/part";
      result.shape = {static_cast<std::int64_t>(count)};
      result.type = {type, false};
      return result;
    };
    InputPlan whole = part(0, dtype_of<Value>());
    whole.dataset = "/X";
    whole.shape = {rows, columns};
    whole.way = by_columns ? Way::csc : Way::csr;
    whole.file_bytes = 1 << 20;
    whole.parts = {part(pointers.size(), dtype_of<Index>()), part(indices.size(), dtype_of<Index>()),
                   part(values.size(), dtype_of<Value>())};
    return whole;
  }
  SparseParts sources() const {
    const auto one_column = [&](const auto& list) {
      using T = typename std::decay_t<decltype(list)>::value_type;
      return MemorySource::dense<T>(static_cast<std::int64_t>(list.size()), 1, list, swapped);
    };
    return {one_column(pointers), one_column(indices), one_column(values)};
  }
  std::unique_ptr<Source> open(std::int64_t memory_limit = 1 << 30) const {
    check_sparse_plan(plan(), memory_limit);
    return make_sparse_source(plan(), sources(), memory_limit);
  }
};

using Dense = std::vector<std::vector<double>>;

/// Rows written out; checks on the way what kernels rely on.
template <typename T>
Dense dense_of(Source& source, RowRange rows, bool swapped = false) {
  const PoisonedBuffer buffer(source.bytes_for(rows));
  const SourceRows got = source.read(rows, buffer.span());
  EXPECT_TRUE(buffer.guard_is_whole());
  const auto& csr = std::get<CsrRows>(got.rows);
  EXPECT_EQ(csr.rows, rows.count);
  EXPECT_EQ(csr.row_start[0], 0);
  Dense dense(static_cast<std::size_t>(rows.count), std::vector<double>(static_cast<std::size_t>(csr.columns), 0.0));
  for (std::int64_t i = 0; i < rows.count; ++i) {
    for (std::int64_t k = csr.row_start[i]; k < csr.row_start[i + 1]; ++k) {
      EXPECT_TRUE(k == csr.row_start[i] || csr.index[k - 1] < csr.index[k]) << "ascending, once";
      std::array<std::byte, sizeof(T)> bytes;
      std::copy_n(csr.value + k * static_cast<std::int64_t>(sizeof(T)), sizeof(T), bytes.begin());
      if (swapped) std::reverse(bytes.begin(), bytes.end());
      dense.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(csr.index[k])) =
          static_cast<double>(std::bit_cast<T>(bytes));
    }
  }
  return dense;
}

template <typename Index, typename Value>
void expect_refused(const Parts<Index, Value>& parts, const std::string& words) {
  const Error e = error_of([&] {
    const auto source = parts.open();
    const RowRange all{0, source->info().rows};
    const PoisonedBuffer buffer(source->bytes_for(all));
    source->read(all, buffer.span());
  });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
}

/// 4 × 3: rows {1:10, 2:20}, {}, {0:30}, {1:40}.
template <typename Index, typename Value>
Parts<Index, Value> small() {
  return {4, 3, {0, 2, 2, 3, 4}, {1, 2, 0, 1}, {10, 20, 30, 40}, false, false};
}

const Dense kSmall = {{0, 10, 20}, {0, 0, 0}, {30, 0, 0}, {0, 40, 0}};

template <typename Index, typename Value>
void expect_small() {
  for (const bool swapped : {false, true}) {
    auto parts = small<Index, Value>();
    parts.swapped = swapped;
    const auto source = parts.open();
    const Dense all = dense_of<Value>(*source, {0, 4}, source->info().type.swapped || swapped);
    EXPECT_EQ(all, kSmall);
    EXPECT_EQ(dense_of<Value>(*source, {1, 2}, swapped), (Dense{kSmall[1], kSmall[2]}));
    EXPECT_EQ(dense_of<Value>(*source, {4, 0}, swapped), Dense{});
  }
}

TEST(Csr, OfEveryIndexType_DeliversItsRows) {
  expect_small<std::int32_t, float>();
  expect_small<std::int64_t, double>();
  expect_small<std::uint32_t, std::uint8_t>();
  expect_small<std::uint64_t, std::int16_t>();
  expect_small<std::uint8_t, float>();
  expect_small<std::int16_t, std::int64_t>();
}

TEST(Csr, UnsortedRowsWithRepeatedColumns_AreSortedAndSummed) {
  const Parts<std::int32_t, double> parts{3, 3, {0, 3, 3, 6}, {1, 1, 0, 2, 0, 2}, {2, 3.5, 1, 4, 5, 6}, false, false};
  const auto source = parts.open();
  EXPECT_EQ(dense_of<double>(*source, {0, 3}), (Dense{{1, 5.5, 0}, {0, 0, 0}, {5, 0, 10}}));
  EXPECT_EQ(dense_of<double>(*source, {2, 1}), (Dense{{5, 0, 10}}));
}

TEST(Csr, SumThatItsTypeDoesNotHold_IsRefusedWithItsRow) {
  expect_refused(Parts<std::int32_t, std::uint8_t>{2, 2, {0, 0, 2}, {1, 1}, {200, 56}, false, false},
                 "row 1 has column 1");
  const auto fits = Parts<std::int32_t, std::uint8_t>{2, 2, {0, 0, 2}, {1, 1}, {200, 55}, false, false}.open();
  EXPECT_EQ(dense_of<std::uint8_t>(*fits, {1, 1}), (Dense{{0, 255}}));
}

TEST(Csr, DamagedPointersAndIndices_AreRefusedNamingTheRow) {
  using P = Parts<std::int32_t, float>;
  expect_refused(P{3, 3, {0, 2, 1, 3}, {0, 1, 2}, {1, 1, 1}, false, false}, "row 1 ends at entry 1 before it begins");
  expect_refused(P{3, 3, {0, 1, 2, 4}, {0, 1, 2}, {1, 1, 1}, false, false}, "row 2 ends at entry 4");
  expect_refused(P{3, 3, {1, 1, 2, 3}, {0, 1, 2}, {1, 1, 1}, false, false}, "first row begins at entry 1");
  expect_refused(P{3, 3, {0, 1, 2, 3}, {0, 1, 3}, {1, 1, 1}, false, false}, "row 2 has a value in column 3");
  expect_refused(P{3, 3, {0, 1, 2, 3}, {0, -1, 2}, {1, 1, 1}, false, false}, "row 1 has a value in column -1");
  expect_refused(P{3, 3, {0, 1, 3}, {0, 1, 2}, {1, 1, 1}, false, false}, "3 index pointers for 3 rows");
  expect_refused(P{3, 3, {0, 1, 2, 3}, {0, 1, 2}, {1, 1}, false, false}, "3 indices and 2 values");
  // 2^31 entries, counted with 32 bits
  expect_refused(P{2, 3, {0, 3, std::numeric_limits<std::int32_t>::min()}, {0, 1, 2}, {1, 1, 1}, false, false},
                 "write them with 64 bits");
  using U = Parts<std::uint64_t, float>;
  expect_refused(U{1, 3, {0, ~std::uint64_t{0}}, {0}, {1}, false, false}, "before it begins");
  expect_refused(U{1, 3, {0, 1}, {std::uint64_t{1} << 63}, {1}, false, false}, "has a value in column");
}

/// Whatever the three data sets hold: an input error, or rows that kernels can take.
TEST(Sparse, OfAnyNumbers_IsAnInputErrorOrWholeRows) {
  std::mt19937_64 random(fresh_seed());
  int whole = 0;
  for (int round = 0; round < 3000; ++round) {
    Parts<std::int16_t, std::int8_t> parts;
    parts.by_columns = pick(random, 0, 1) == 1;
    parts.rows = pick(random, 0, 5);
    parts.columns = pick(random, 1, 5);
    const std::int64_t lines = parts.by_columns ? parts.columns : parts.rows, entries = pick(random, 0, 8);
    const bool wild = pick(random, 0, 3) == 0;
    std::int64_t at = 0;
    for (std::int64_t i = 0; i <= lines; ++i) {
      parts.pointers.push_back(static_cast<std::int16_t>(wild ? pick(random, -3, 9) : at));
      at = std::min(entries, at + pick(random, 0, 3));
    }
    for (std::int64_t k = 0; k < entries; ++k) {
      parts.indices.push_back(static_cast<std::int16_t>(wild ? random() : pick(random, 0, 4)));
      parts.values.push_back(static_cast<std::int8_t>(random()));
    }
    try {
      const auto source = parts.open(pick(random, 0, 9) == 0 ? 0 : 1 << 20);
      const std::int64_t first = pick(random, 0, parts.rows);
      dense_of<std::int8_t>(*source, {first, parts.rows - first});
      ++whole;
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ExitCode::input) << e.what();
    }
  }
  EXPECT_GT(whole, 100);
}

TEST(Csr, MoreRowsThanAFileOfItsSizeHolds_AreRefusedBeforeMemoryIsTaken) {
  auto plan = small<std::int32_t, float>().plan();
  plan.shape = {std::int64_t{1} << 40, 3};
  plan.parts[0].shape = {(std::int64_t{1} << 40) + 1};
  EXPECT_EQ(error_of([&] { check_sparse_plan(plan, 1 << 30); }).code(), ExitCode::input);
}

TEST(Csr, EntriesBehindTheLastRow_AreNotReadAndSaid) {
  const auto source = Parts<std::int32_t, float>{1, 3, {0, 1}, {2, 7}, {5, 6}, false, false}.open();
  EXPECT_EQ(dense_of<float>(*source, {0, 1}), (Dense{{0, 0, 5}}));
  ASSERT_EQ(source->info().warnings.size(), 1U);
}

/// The same matrix by rows and by columns, with every row in a random order and some entries in two pieces.
TEST(Csc, IsTheSameRowsAsCsr) {
  std::mt19937_64 random(fresh_seed());
  for (int round = 0; round < 20; ++round) {
    const std::int64_t rows = pick(random, 1, 40), columns = pick(random, 1, 40);
    std::map<std::pair<std::int64_t, std::int64_t>, double> entries;
    for (std::int64_t n = pick(random, 0, rows * columns / 2); n > 0; --n) {
      entries[{pick(random, 0, rows - 1), pick(random, 0, columns - 1)}] = static_cast<double>(pick(random, -9, 9));
    }
    Parts<std::int32_t, double> by_rows{rows, columns, {0}, {}, {}, false, false},
        by_columns{rows, columns, {0}, {}, {}, true, false};
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = columns; j-- > 0;) {
        const auto found = entries.find({i, j});
        if (found == entries.end()) continue;
        by_rows.indices.insert(by_rows.indices.end(), 2, static_cast<std::int32_t>(j));
        by_rows.values.push_back(found->second - 1);
        by_rows.values.push_back(1);
      }
      by_rows.pointers.push_back(static_cast<std::int32_t>(by_rows.indices.size()));
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = rows; i-- > 0;) {
        const auto found = entries.find({i, j});
        if (found == entries.end()) continue;
        by_columns.indices.insert(by_columns.indices.end(), 2, static_cast<std::int32_t>(i));
        by_columns.values.push_back(1);
        by_columns.values.push_back(found->second - 1);
      }
      by_columns.pointers.push_back(static_cast<std::int32_t>(by_columns.indices.size()));
    }
    const auto a = by_rows.open(), b = by_columns.open();
    const std::int64_t first = pick(random, 0, rows - 1), count = pick(random, 0, rows - first);
    EXPECT_EQ(dense_of<double>(*a, {0, rows}), dense_of<double>(*b, {0, rows}));
    EXPECT_EQ(dense_of<double>(*a, {first, count}), dense_of<double>(*b, {first, count}));
  }
}

/// As small(), by columns.
Parts<std::int32_t, float> small_by_columns() {
  return {4, 3, {0, 1, 3, 4}, {2, 0, 3, 0}, {30, 10, 40, 20}, true, false};
}

ReadingPlan plan_to_read(const Source& source, RowRange rows) {
  return {.grid = BlockGrid({0, source.info().rows}, 1), .rows = rows, .memory_bytes = 1 << 20};
}

TEST(Csc, HoldsTheRowsThatWillBeAskedFor_AndDeliversTheOthersToo) {
  const auto source = small_by_columns().open();
  using RowsAndEntries = std::pair<RowRange, std::int64_t>;
  for (const auto& [rows, entries] : {RowsAndEntries{{0, 4}, 4}, {{2, 2}, 2}, {{1, 2}, 1}, {{0, 1}, 2}, {{3, 0}, 0}}) {
    source->prepare(plan_to_read(*source, rows));
    EXPECT_EQ(source->info().shared_bytes, 8 * entries + 8 * rows.count) << rows.first << " " << rows.count;
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(dense_of<float>(*source, {2, 1}), Dense{kSmall[2]});
      EXPECT_EQ(dense_of<float>(*source, {0, 4}), kSmall);
      EXPECT_EQ(dense_of<float>(*source, {1, 3}), (Dense{kSmall[1], kSmall[2], kSmall[3]}));
    }
  }
}

TEST(Csc, ReadBySeveralThreads_IsTurnedOnce) {
  const auto source = small_by_columns().open();
  source->prepare(plan_to_read(*source, {0, 3}));
  const std::int64_t before = source->bytes_read();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&source, i] {
      const RowRange rows{i % 3, 1};
      EXPECT_EQ(dense_of<float>(*source, rows), Dense{kSmall[static_cast<std::size_t>(rows.first)]});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::int64_t once = source->bytes_read() - before;
  EXPECT_GT(once, 0);
  dense_of<float>(*source, {0, 3});
  EXPECT_EQ(source->bytes_read() - before, once);
  dense_of<float>(*source, {0, 4});
  EXPECT_EQ(source->bytes_read() - before, 2 * once) << "a row more, and a walk";
}

TEST(Csc, OfRowsThatFit_IsReadThoughAllOfThemWouldNot) {
  const auto source = small_by_columns().open(40);
  EXPECT_EQ(error_of([&] { source->prepare(plan_to_read(*source, {0, 4})); }).code(), ExitCode::input);
  source->prepare(plan_to_read(*source, {2, 2}));
  EXPECT_EQ(dense_of<float>(*source, {2, 2}), (Dense{kSmall[2], kSmall[3]}));
}

TEST(Csc, LargerThanMayBeHeld_IsRefusedWithTheCure) {
  auto parts = small_by_columns();
  EXPECT_EQ(dense_of<float>(*parts.open(), {0, 4}), kSmall);
  const auto large = parts.open(40);
  const Error e = error_of([&] { dense_of<float>(*large, {0, 4}); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_NE(std::string(e.what()).find("tocsr()"), std::string::npos) << e.what();
  parts.indices = {2, 0, 4, 0};
  expect_refused(parts, "column 1 has a value in row 4");
}

TEST(Sparse, TellsItsEntriesAndTheProductsOfItsRows) {
  for (const auto& parts : {small<std::int32_t, float>(), small_by_columns()}) {
    const auto source = parts.open();
    EXPECT_EQ(source->info().entries, 4);
    EXPECT_EQ(source->info().entry_pairs, 3 + 1 + 1);
  }
  const auto chosen = select_columns(small<std::int32_t, float>().open(), {0, 1, 2, 0, 1, 2});
  EXPECT_EQ(chosen->info().entries, 8);
}

TEST(SelectColumns, OfSparseRows_DeliversTheSameAsOfDenseOnes) {
  for (const std::vector<std::int64_t>& columns :
       {std::vector<std::int64_t>{0, 1, 2}, {2, 1, 0}, {1}, {2, 0}, {1, 1, 2, 1}}) {
    const auto source = select_columns(small<std::int32_t, float>().open(), columns);
    EXPECT_EQ(source->info().columns, static_cast<std::int64_t>(columns.size()));
    Dense wanted;
    for (const auto& row : kSmall) {
      wanted.emplace_back();
      for (const std::int64_t column : columns) wanted.back().push_back(row[static_cast<std::size_t>(column)]);
    }
    EXPECT_EQ(dense_of<float>(*source, {0, 4}), wanted);
    EXPECT_EQ(dense_of<float>(*source, {2, 2}), (Dense{wanted[2], wanted[3]}));
    EXPECT_GT(source->bytes_read(), 0);
  }
  EXPECT_EQ(error_of([&] { select_columns(small<std::int32_t, float>().open(), {3}); }).code(), ExitCode::usage);
}

}  // namespace
}  // namespace rowmill::test
