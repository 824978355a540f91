// Files joined along rows: whose rows they are, in which type, and how few of them are open at a time.
#include "io/joined_source.hpp"

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "io/inputs.hpp"
#include "io/joined_plan.hpp"
#include "tests/io/io_support.hpp"
#include "tests/support/memory_source.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

/// Sources in memory behind plans, which count how many of them are open.
class Files {
 public:
  template <typename T>
  void add(std::int64_t columns, std::vector<T> values, bool swapped = false) {
    const auto rows = static_cast<std::int64_t>(values.size()) / columns;
    plans_.push_back(plan(rows, columns, {dtype_of<T>(), swapped}));
    makers_.push_back([=] { return MemorySource::dense<T>(rows, columns, values, swapped); });
  }

  void add_sparse(std::int64_t columns, std::vector<std::int64_t> row_start, std::vector<std::int64_t> index,
                  std::vector<float> values) {
    plans_.push_back(plan(static_cast<std::int64_t>(row_start.size()) - 1, columns, {DType::f32, false}));
    plans_.back().way = Way::csr;
    makers_.push_back([=] { return MemorySource::csr<float>(columns, row_start, index, values); });
  }

  InputPlan& last() { return plans_.back(); }
  void mask_last(std::vector<std::uint8_t> mask) {
    last().conventions.missing.push_back(Number::of(0.0));  // what stands for missing ones is in the mask
    makers_.back() = [mask, inner = makers_.back()] {
      auto source = inner();
      static_cast<MemorySource&>(*source).set_mask(mask);
      return source;
    };
  }

  std::unique_ptr<Source> join() {
    return join_rows(join_plans(plans_, 1 << 20), [this](const InputPlan& part) { return open(part); });
  }

  int most_open() const { return most_open_; }
  int opened() const { return opened_; }

 private:
  class Counted : public Source {
   public:
    Counted(Files& files, std::unique_ptr<Source> source) : files_(files), source_(std::move(source)) {
      const int now = ++files_.open_;
      for (int most = files_.most_open_; now > most && !files_.most_open_.compare_exchange_weak(most, now);) {
      }
      ++files_.opened_;
    }
    ~Counted() override { --files_.open_; }
    const SourceInfo& info() const override { return source_->info(); }
    std::size_t bytes_for(RowRange rows) const override { return source_->bytes_for(rows); }
    SourceRows read(RowRange rows, std::span<std::byte> to) override {
      count_bytes(rows.count);
      return source_->read(rows, to);
    }

   private:
    Files& files_;
    std::unique_ptr<Source> source_;
  };

  InputPlan plan(std::int64_t rows, std::int64_t columns, ElementType type) const {
    InputPlan result;
    result.path = "f" + std::to_string(plans_.size());
    result.dataset = "/X";
    result.format = "hdf5";
    result.shape = {rows, columns};
    result.type = type;
    result.stored_type = name_of(type);
    return result;
  }

  std::unique_ptr<Source> open(const InputPlan& part) {
    return std::make_unique<Counted>(*this, makers_.at(static_cast<std::size_t>(std::stoi(part.path.substr(1))))());
  }

  std::vector<InputPlan> plans_;
  std::vector<std::function<std::unique_ptr<Source>()>> makers_;
  std::atomic<int> open_ = 0, most_open_ = 0, opened_ = 0;
};

/// Values as T, in native order; NaN-like -1 for missing ones.
template <typename T>
std::vector<T> values_of(Source& source, RowRange rows) {
  const PoisonedBuffer buffer(source.bytes_for(rows));
  const SourceRows got = source.read(rows, buffer.span());
  EXPECT_TRUE(buffer.guard_is_whole());
  const auto& dense = std::get<DenseRows>(got.rows);
  EXPECT_EQ(dense.type, (ElementType{dtype_of<T>(), false}));
  EXPECT_EQ(dense.rows, rows.count);
  std::vector<T> values(static_cast<std::size_t>(rows.count * dense.columns));
  if (!values.empty()) std::memcpy(values.data(), dense.data, values.size() * sizeof(T));
  for (std::int64_t i = 0; got.missing && i < dense.rows; ++i) {
    for (std::int64_t j = 0; j < dense.columns; ++j) {
      if (got.missing->at(i, j) != 0) values[static_cast<std::size_t>(i * dense.columns + j)] = static_cast<T>(-1);
    }
  }
  return values;
}

TEST(Joined, AnyRows_AreThoseOfTheFilesOneBelowAnother) {
  Files files;
  std::vector<float> all;
  for (const std::int64_t rows : {3, 0, 1, 40, 0, 2}) {
    std::vector<float> part;
    for (std::int64_t k = 0; k < rows * 5; ++k) part.push_back(static_cast<float>(all.size() + part.size()));
    all.insert(all.end(), part.begin(), part.end());
    files.add<float>(5, part);
  }
  const auto source = files.join();
  ASSERT_EQ(source->info().rows, 46);
  for (std::int64_t first = 0; first <= 46; ++first) {
    for (std::int64_t end = first; end <= 46; ++end) {
      EXPECT_EQ(values_of<float>(*source, {first, end - first}),
                std::vector<float>(all.begin() + first * 5, all.begin() + end * 5))
          << first << " " << end;
    }
  }
}

TEST(Joined, RowsOfAllFiles_AreReadAndCountedOnce) {
  Files files;
  for (int i = 0; i < 20; ++i) files.add<float>(1, std::vector<float>(7, static_cast<float>(i)));
  const auto source = files.join();
  for (std::int64_t first = 0; first < 140; first += 10) values_of<float>(*source, {first, 10});
  EXPECT_EQ(source->bytes_read(), 140);
  EXPECT_EQ(files.opened(), 20);
}

TEST(Joined, ThousandsOfFiles_AreNotAllOpen) {
  Files files;
  for (int i = 0; i < 3000; ++i) files.add<float>(1, {static_cast<float>(i)});
  const auto source = files.join();
  std::atomic<std::int64_t> next = 0;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> readers;
    for (int t = 0; t < 4; ++t) {
      readers.emplace_back([&] {
        for (std::int64_t first = next.fetch_add(100); first < 3000; first = next.fetch_add(100)) {
          const auto got = values_of<float>(*source, {first, 100});
          for (std::size_t k = 0; k < 100; ++k) wrong += got[k] != static_cast<float>(first) + static_cast<float>(k);
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(files.most_open(), 8);
}

TEST(Joined, OtherByteOrder_IsTurned) {
  Files files;
  files.add<std::int32_t>(2, {1, 2}, true);
  files.add<std::int32_t>(2, {3, -4});
  EXPECT_EQ(values_of<std::int32_t>(*files.join(), {0, 2}), (std::vector<std::int32_t>{1, 2, 3, -4}));
}

TEST(Joined, TypesThatDiffer_AreWidenedExactly) {
  Files files;
  files.add<std::int16_t>(1, {-32768, 32767}, true);
  files.add<float>(1, {0.1F, -std::numeric_limits<float>::infinity()});
  files.add<std::uint32_t>(1, {4294967295U, 7});
  EXPECT_EQ(values_of<double>(*files.join(), {0, 6}),
            (std::vector<double>{-32768, 32767, static_cast<double>(0.1F), -HUGE_VAL, 4294967295.0, 7}));

  Files integers;
  integers.add<std::uint8_t>(1, {255});
  integers.add<std::int8_t>(1, {-128});
  EXPECT_EQ(values_of<std::int16_t>(*integers.join(), {0, 2}), (std::vector<std::int16_t>{255, -128}));
}

TEST(Joined, MasksOfSomeFiles_StayWithTheirRows) {
  Files files;
  files.add<std::int32_t>(2, {1, 2, 3, 4});
  files.add<std::int16_t>(2, {5, 6, 7, 8});
  files.mask_last({0, 1, 0, 0});
  files.add<std::int32_t>(2, {9, 10});
  files.mask_last({1, 0});
  const auto source = files.join();
  EXPECT_EQ(values_of<std::int32_t>(*source, {0, 5}), (std::vector<std::int32_t>{1, 2, 3, 4, 5, -1, 7, 8, -1, 10}));
  EXPECT_EQ(values_of<std::int32_t>(*source, {0, 1}), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(values_of<std::int32_t>(*source, {4, 1}), (std::vector<std::int32_t>{-1, 10}));
}

TEST(Joined, SparseFiles_GiveSparseRows) {
  Files files;
  files.add_sparse(4, {0, 1, 1, 3}, {2, 0, 3}, {1, 2, 3});
  files.add_sparse(4, {0, 0}, {}, {});
  files.add_sparse(4, {0, 2, 3}, {1, 2, 0}, {4, 5, 6});
  const auto source = files.join();
  EXPECT_EQ(source->info().entries, 6);
  EXPECT_EQ(source->info().entry_pairs, 1 + 3 + 3 + 1);
  const std::vector<std::vector<float>> want = {{0, 0, 1, 0}, {}, {2, 0, 0, 3}, {}, {0, 4, 5, 0}, {6, 0, 0, 0}};
  for (std::int64_t first = 0; first <= 6; ++first) {
    for (std::int64_t count = 0; first + count <= 6; ++count) {
      const PoisonedBuffer buffer(source->bytes_for({first, count}));
      const SourceRows got = source->read({first, count}, buffer.span());
      EXPECT_TRUE(buffer.guard_is_whole());
      const auto& csr = std::get<CsrRows>(got.rows);
      ASSERT_EQ(csr.rows, count);
      ASSERT_EQ(csr.row_start[0], 0);
      for (std::int64_t i = 0; i < count; ++i) {
        std::vector<float> row(4, 0);
        for (std::int64_t k = csr.row_start[i]; k < csr.row_start[i + 1]; ++k) {
          std::memcpy(&row.at(static_cast<std::size_t>(csr.index[k])), csr.value + 4 * k, 4);
        }
        std::vector<float> wanted = want[static_cast<std::size_t>(first + i)];
        wanted.resize(4, 0);
        EXPECT_EQ(row, wanted) << first << " " << i;
      }
    }
  }
}

TEST(Joined, Rows_AreNamedByFile) {
  Files files;
  for (const std::size_t rows : {3, 0, 2}) files.add<float>(1, std::vector<float>(rows));
  const SourceInfo info = files.join()->info();
  EXPECT_EQ(place_of_row(info, 2).name, "f0:/X");
  EXPECT_EQ(place_of_row(info, 3).name, "f2:/X");
  EXPECT_EQ(place_of_row(info, 4).row, 1);
  EXPECT_EQ(info.files.size(), 3U);
}

void expect_refused(Files& files, const std::string& words) {
  const Error e = error_of([&] { files.join(); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
}

TEST(Joined, FilesThatDoNotFit_AreNamed) {
  Files columns;
  columns.add<float>(2, {1, 2});
  columns.add<float>(2, {1, 2});
  columns.add<float>(3, {1, 2, 3});
  expect_refused(columns, "f2:/X: has 3 columns, f0:/X has 2");

  Files names;
  names.add<float>(2, {1, 2});
  names.add<float>(2, {1, 2});
  names.last().column_names = {"a", "b"};
  names.add<float>(2, {1, 2});
  names.last().column_names = {"a", "c"};
  expect_refused(names, "f2:/X: its column 1 is named 'c', that of f1:/X 'b'");

  Files types;
  types.add<std::uint8_t>(1, {1});
  types.add<float>(1, {1});
  types.add<std::int64_t>(1, {1});
  expect_refused(types, "f2:/X: holds int64, f1:/X float32: no type holds the values of all files exactly");

  Files kinds;
  kinds.add_sparse(4, {0, 1}, {2}, {1});
  kinds.add<float>(4, {1, 2, 3, 4});
  expect_refused(kinds, "f1:/X: is dense, f0:/X is not");
}

TEST(Joined, Names_AreCarriedFromTheFileThatHasThem) {
  Files files;
  files.add<float>(2, {1, 2});
  files.add<float>(2, {1, 2});
  files.last().column_names = {"a", "b"};
  EXPECT_EQ(files.join()->info().column_names, (std::vector<std::string>{"a", "b"}));
}

TEST(Joined, AWarningOfManyFiles_IsSaidOnce) {
  Files files;
  for (int i = 0; i < 4; ++i) {
    files.add<float>(1, {1});
    files.last().warnings = {files.last().name() + ": is old"};
  }
  EXPECT_EQ(files.join()->info().warnings, (std::vector<std::string>{"f0:/X: is old (and so of 3 more files)"}));
}

TEST(Joined, APlan_ComesBackFromItsBytes) {
  const ScratchFolder folder;
  std::mt19937_64 random(fresh_seed());
  Model model = random_model(random, {4, 3}, {DType::f32, false});
  for (const char* name : {"a.h5", "b.h5"}) write_model(folder / name, model, {});
  InputRequest request;
  request.inputs = {folder / "a.h5", folder / "b.h5:/X"};
  Model both = model;
  both.shape[0] = 8;
  both.bytes.insert(both.bytes.end(), model.bytes.begin(), model.bytes.end());
  const auto source = open_source(request);
  EXPECT_TRUE(reads_as(*source, both, {0, 8}));
  EXPECT_NO_THROW(source->check_unchanged());
  std::ofstream(folder / "b.h5", std::ios::app) << "more";
  const Error e = error_of([&] { source->check_unchanged(); });
  EXPECT_NE(std::string(e.what()).find("b.h5:/X: was written to"), std::string::npos) << e.what();
}

TEST(Joined, StorageChunksThatTwoBlocksShare_AreReadOnce) {
  const ScratchFolder folder;
  std::mt19937_64 random(fresh_seed());
  Model before = random_model(random, {3, 4}, {DType::f32, false});
  Model model = random_model(random, {300, 4}, {DType::f32, false});
  write_model(folder / "a.h5", before, {});
  write_model(folder / "b.h5", model, {.chunk = {10, 4}, .gzip = 1});
  const auto alone = open_source(request_for(folder / "b.h5"));
  EXPECT_TRUE(reads_as(*alone, model, {0, 300}));
  InputRequest request;
  request.inputs = {folder / "a.h5", folder / "b.h5"};
  const auto source = open_source(request);
  // blocks begin three rows before storage chunks do, though they are as high
  const BlockGrid grid({0, 303}, 10);
  source->prepare({grid, {0, 303}, 64 << 20, 1});
  for (std::int64_t id = 0; id < grid.end_id(); ++id) {
    const PoisonedBuffer buffer(source->bytes_for(grid.range(id)));
    source->read(grid.range(id), buffer.span());
  }
  EXPECT_EQ(source->bytes_read(), static_cast<std::int64_t>(before.bytes.size()) + alone->bytes_read());
}

TEST(Inputs, Patterns_GiveFilesInTheOrderOfTheirNames) {
  const ScratchFolder folder;
  for (const char* name : {"b.h5", "a10.h5", "a2.h5", "B.h5", "x[1].h5", "c.npy"}) std::ofstream(folder / name) << ".";
  const auto names = [&](const std::vector<std::string>& inputs) {
    std::vector<std::string> result;
    for (const NamedInput& input : expand_inputs(inputs)) {
      result.push_back(input.path.substr(folder.path().string().size() + 1) + ">" + input.dataset);
    }
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({folder / "*.h5:/X"}), (Names{"B.h5>/X", "a10.h5>/X", "a2.h5>/X", "b.h5>/X", "x[1].h5>/X"}));
  EXPECT_EQ(names({folder / "c.npy", folder / "a?.h5"}), (Names{"c.npy>", "a2.h5>"}));
  EXPECT_EQ(names({folder / "[ab].h5:/g/X", folder / "b.h5:/Y"}), (Names{"b.h5>/g/X", "b.h5>/Y"}));
  EXPECT_EQ(names({folder / "x[1].h5"}), Names{"x[1].h5>"}) << "a file of that very name";
  EXPECT_EQ(error_of([&] { names({folder / "c.npy", folder / "n*.h5:/X"}); }).code(), ExitCode::usage);
}

TEST(Inputs, TheFirstThatCannotBePlanned_IsTheOneNamed) {
  std::vector<NamedInput> inputs;
  for (int i = 0; i < 200; ++i) inputs.push_back({std::to_string(i), ""});
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Error e = error_of([&] {
      plan_each(inputs, [](const NamedInput& input) -> InputPlan {
        const int i = std::stoi(input.path);
        if (i == 150 || i == 17 || i == 18) throw Error(ExitCode::input, input.path);
        return {};
      });
    });
    EXPECT_STREQ(e.what(), "17");
  }
}

}  // namespace
}  // namespace rowmill::test
