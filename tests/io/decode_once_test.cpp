// Storage chunks are decoded once, whatever is done with their rows on the way to a block.
#include "io/column_join_source.hpp"
#include "io/convention_source.hpp"
#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

/// Storage chunks of more than a mebibyte, of which two lie below another, and a last one that is not full.
constexpr std::int64_t kColumns = 300, kBandRows = 2000, kRows = 5000;

class DecodeOnce : public ::testing::Test {
 protected:
  /// Writes it, and counts the bytes of its storage chunks.
  Model write(const std::string& name, std::int64_t rows = kRows, ElementType type = {DType::i16, false}) {
    Model model = random_model(random_, {rows, kColumns}, type);
    write_model(folder_ / name, model, {.chunk = {kBandRows, kColumns}, .gzip = 1});
    const hid_t file = H5Fopen((folder_ / name).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/X", H5P_DEFAULT);
    stored_bytes_ += static_cast<std::int64_t>(H5Dget_storage_size(dataset));
    H5Dclose(dataset);
    H5Fclose(file);
    return model;
  }

  std::unique_ptr<Source> open(const std::vector<std::string>& names) {
    InputRequest request;
    for (const std::string& name : names) request.inputs.push_back(folder_ / (name + ":/X"));
    return open_source(request);
  }

  /// What the source delivers in blocks, one behind the other.
  template <typename T>
  static std::vector<T> read_blocks(Source& source, std::int64_t block_rows) {
    const BlockGrid grid({0, source.info().rows}, block_rows);
    source.prepare({grid, grid.rows(), 64 << 20});
    std::vector<T> values;
    for (std::int64_t id = grid.first_id(); id < grid.end_id(); ++id) {
      const RowRange rows = grid.range(id);
      const PoisonedBuffer buffer(source.bytes_for(rows));
      const auto dense = std::get<DenseRows>(source.read(rows, buffer.span()).rows);
      EXPECT_TRUE(buffer.guard_is_whole());
      EXPECT_EQ(size_of(dense.type.dtype), sizeof(T));
      const auto* first = reinterpret_cast<const T*>(dense.data);
      values.insert(values.end(), first, first + rows.count * dense.columns);
    }
    return values;
  }

  static std::int16_t value_of(const Model& model, std::int64_t row, std::int64_t column) {
    std::int16_t value = 0;
    std::memcpy(&value, model.bytes.data() + (row * kColumns + column) * 2, 2);
    return value;
  }

  ScratchFolder folder_;
  std::mt19937_64 random_{fresh_seed()};
  std::int64_t stored_bytes_ = 0;
};

TEST_F(DecodeOnce, ScaledValues) {
  const Model model = write("a.h5");
  for (const std::int64_t block_rows : {kBandRows, 2 * kBandRows, kRows, std::int64_t{700}}) {
    SCOPED_TRACE(block_rows);
    const auto source = with_conventions(open({"a.h5"}), {{}, {}, {}, 0.5, {}});
    const auto values = read_blocks<double>(*source, block_rows);
    ASSERT_EQ(values.size(), static_cast<std::size_t>(kRows * kColumns));
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      ASSERT_EQ(values[static_cast<std::size_t>(i)], 0.5 * value_of(model, i / kColumns, i % kColumns)) << i;
    }
    EXPECT_EQ(source->bytes_read(), stored_bytes_);
  }
}

TEST_F(DecodeOnce, ChosenColumnsOfJoinedFiles) {
  const Model models[] = {write("a.h5", 3000), write("b.h5"), write("c.h5", 700)};
  for (const std::int64_t block_rows : {std::int64_t{9000}, kBandRows, std::int64_t{700}}) {
    SCOPED_TRACE(block_rows);
    const auto source = select_columns(open({"a.h5", "b.h5", "c.h5"}), {299, 0});
    const auto values = read_blocks<std::int16_t>(*source, block_rows);
    ASSERT_EQ(values.size(), std::size_t{2 * 8700});
    std::size_t at = 0;
    for (const Model& model : models) {
      for (std::int64_t row = 0; row < model.shape[0]; ++row) {
        ASSERT_EQ(values[at++], value_of(model, row, 299)) << row;
        ASSERT_EQ(values[at++], value_of(model, row, 0)) << row;
      }
    }
    EXPECT_EQ(source->bytes_read(), stored_bytes_);
    EXPECT_GE(source->info().reader_bytes, 2 * 2 * std::min(block_rows, kBandRows) * kColumns)
        << "a storage chunk as it is decoded, and the rows of which columns are taken";
  }
}

TEST_F(DecodeOnce, JoinedFilesOfOtherTypes) {
  write("a.h5", 3000);
  write("b.h5", 3000, {DType::i32, false});
  const auto source = open({"a.h5", "b.h5"});
  EXPECT_EQ(read_blocks<std::int32_t>(*source, 6000).size(), static_cast<std::size_t>(6000 * kColumns));
  EXPECT_EQ(source->bytes_read(), stored_bytes_);
}

TEST_F(DecodeOnce, BlocksOfColumns) {
  const Model first = write("a.h5"), second = write("b.h5");
  for (const std::int64_t block_rows : {kBandRows, kRows, std::int64_t{700}}) {
    SCOPED_TRACE(block_rows);
    InputPlan plan;
    plan.shape = {kRows, 2 * kColumns};
    plan.type = {DType::f64, false};
    plan.parts.resize(2);
    for (std::int64_t j = 0; j < 2 * kColumns; ++j) plan.parts[static_cast<std::size_t>(j % 2)].places.push_back(j);
    std::vector<std::unique_ptr<Source>> parts;
    for (const char* name : {"a.h5", "b.h5"}) parts.push_back(open({name}));
    const auto source = join_columns(plan, std::move(parts));
    const auto values = read_blocks<double>(*source, block_rows);
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      ASSERT_EQ(values[static_cast<std::size_t>(2 * i)], value_of(first, i / kColumns, i % kColumns)) << i;
      ASSERT_EQ(values[static_cast<std::size_t>(2 * i + 1)], value_of(second, i / kColumns, i % kColumns)) << i;
    }
    EXPECT_EQ(source->bytes_read(), stored_bytes_);
  }
}

}  // namespace
}  // namespace rowmill::test
