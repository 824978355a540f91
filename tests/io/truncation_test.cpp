// Files that are cut short after they were planned or opened, and damaged storage chunks.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

class Truncation : public ::testing::Test {
 protected:
  /// Reads all rows of a file that is cut to `bytes` once the source is open.
  Error read_error(const std::string& input, std::int64_t bytes) {
    const std::string path = split_input(input).first;
    const auto source = open_source(request_for(input));
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes));
    const RowRange rows{0, source->info().rows};
    const PoisonedBuffer buffer(source->bytes_for(rows));
    return error_of([&] { source->read(rows, buffer.span()); });
  }

  void expect_truncated(const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::input);
    EXPECT_FALSE(e.row().has_value()) << "ranks with earlier rows would go on";
    EXPECT_NE(std::string(e.what()).find("row"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("truncated"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("a.h5:/X"), std::string::npos) << e.what();
  }

  ScratchFolder folder_;
  std::mt19937_64 random_{fresh_seed()};
};

TEST_F(Truncation, OfAContiguousDataSetWhileItIsRead_IsAnInputErrorWithTheRow) {
  Model model = random_model(random_, {1000, 50}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {});
  expect_truncated(read_error(folder_ / "a.h5", 200000));
}

TEST_F(Truncation, OfStorageChunksWhileTheyAreRead_IsAnInputErrorWithTheRow) {
  Model model = random_model(random_, {1000, 50}, {DType::f64, false});
  for (const std::vector<std::int64_t>& chunk : {std::vector<std::int64_t>{100, 50}, {100, 7}}) {
    write_model(folder_ / "a.h5", model, {.chunk = chunk});
    expect_truncated(read_error(folder_ / "a.h5", 200000));
  }
}

TEST_F(Truncation, OfACompressedDataSetWhileItIsRead_IsAnInputErrorWithTheRow) {
  Model model = random_model(random_, {1000, 50}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {.chunk = {100, 50}, .gzip = 1});
  expect_truncated(read_error(folder_ / "a.h5", 200000));
}

TEST_F(Truncation, BetweenPlanAndOpen_IsAnInputError) {
  Model model = random_model(random_, {1000, 50}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {});
  const InputRequest request = request_for(folder_ / "a.h5");
  const auto plan = plan_input(request);
  std::filesystem::resize_file(folder_ / "a.h5", 3000);
  const Error e = error_of([&] { make_source(plan, request); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_NE(std::string(e.what()).find("a.h5:/X: is truncated"), std::string::npos) << e.what();
}

TEST_F(Truncation, OfNothing_AWriteWhileItIsReadIsAnInputError) {
  Model model = random_model(random_, {1000, 50}, {DType::f64, false});
  for (const bool chosen : {false, true}) {
    write_model(folder_ / "a.h5", model, {});
    auto source = open_source(request_for(folder_ / "a.h5"));
    if (chosen) source = select_columns(std::move(source), {3, 1});
    EXPECT_NO_THROW(source->check_unchanged());
    std::fstream(folder_ / "a.h5", std::ios::in | std::ios::out | std::ios::binary).seekp(5000).put('x');
    const Error e = error_of([&] { source->check_unchanged(); });
    EXPECT_EQ(e.code(), ExitCode::input);
    EXPECT_NE(std::string(e.what()).find("a.h5:/X: was written to while it was read"), std::string::npos) << e.what();
  }
}

TEST_F(Truncation, OfNothing_AFileReplacedBetweenPlanAndOpenIsAnInputError) {
  Model model = random_model(random_, {1000, 50}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {});
  const InputRequest request = request_for(folder_ / "a.h5");
  const auto plan = plan_input(request);
  write_model(folder_ / "b.h5", model, {});
  std::filesystem::rename(folder_ / "b.h5", folder_ / "a.h5");
  EXPECT_EQ(error_of([&] { make_source(plan, request); }).code(), ExitCode::input);
}

TEST_F(Truncation, BeforeItIsOpened_IsToldAsTruncated) {
  Model model = random_model(random_, {1000, 4}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {});
  std::filesystem::resize_file(folder_ / "a.h5", std::filesystem::file_size(folder_ / "a.h5") - 300);
  const Error e = error_of([&] { plan_input(request_for(folder_ / "a.h5:/X")); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_NE(std::string(e.what()).find("truncated"), std::string::npos) << e.what();
}

TEST_F(Truncation, OfNothing_ADamagedStorageChunkIsAnInputErrorWithItsRows) {
  Model model = random_model(random_, {100, 5}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {.chunk = {10, 5}, .fletcher = true});
  std::string bytes;
  {
    std::ifstream in(folder_ / "a.h5", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::string row(reinterpret_cast<const char*>(model.bytes.data()) + 55 * 40, 40);
  const std::size_t at = bytes.find(row);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(folder_ / "a.h5", std::ios::binary) << bytes;
  const auto source = open_source(request_for(folder_ / "a.h5:/X"));
  EXPECT_TRUE(reads_as(*source, model, {0, 50}));
  const PoisonedBuffer buffer(source->bytes_for({50, 10}));
  const Error e = error_of([&] { source->read({50, 10}, buffer.span()); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_FALSE(e.row().has_value()) << "ranks with earlier rows would go on";
  EXPECT_NE(std::string(e.what()).find("fletcher32"), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("rows 50 to 59"), std::string::npos) << e.what();
}

}  // namespace
}  // namespace rowmill::test
