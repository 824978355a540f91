// Storage chunks that are decoded here: filters, masks, axes, and each of them once.
#include <atomic>
#include <fstream>
#include <future>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

class Decoded : public ::testing::Test {
 protected:
  std::vector<std::int64_t> extents(std::size_t axes, std::int64_t most) {
    std::vector<std::int64_t> result(axes);
    for (auto& extent : result) extent = pick(random_, 1, most);
    return result;
  }

  /// Bytes of all storage chunks as they are stored.
  std::int64_t stored_bytes() {
    const hid_t file = H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/X", H5P_DEFAULT);
    const auto bytes = static_cast<std::int64_t>(H5Dget_storage_size(dataset));
    H5Dclose(dataset);
    H5Fclose(file);
    return bytes;
  }

  std::unique_ptr<Source> open(int row_axis = 0) { return open_source(request_for(folder_ / "a.h5:/X", row_axis)); }

  /// Reads all blocks in order, as many at a time as there are threads.
  static ::testing::AssertionResult read_blocks(Source& source, const Model& model, std::int64_t block_rows,
                                                int threads) {
    const std::int64_t rows = source.info().rows, blocks = (rows - 1) / block_rows + 1;
    std::atomic<std::int64_t> next{0};
    std::vector<std::future<::testing::AssertionResult>> readers;
    for (int t = 0; t < threads; ++t) {
      readers.push_back(std::async(std::launch::async, [&] {
        for (std::int64_t block = next++; block < blocks; block = next++) {
          const std::int64_t first = block * block_rows;
          auto result = reads_as(source, model, {first, std::min(block_rows, rows - first)});
          if (!result) return result;
        }
        return ::testing::AssertionSuccess();
      }));
    }
    auto all = ::testing::AssertionSuccess();
    for (auto& reader : readers) {
      auto one = reader.get();
      if (!one) all = one;
    }
    return all;
  }

  static ReadingPlan reading(const Source& source, std::int64_t block_rows, std::int64_t memory) {
    const RowRange all{0, source.info().rows};
    return {BlockGrid(all, block_rows), all, memory, 4, {}};
  }

  ScratchFolder folder_;
  std::uint64_t seed_ = fresh_seed();
  std::mt19937_64 random_{seed_};
};

TEST_F(Decoded, OfAnyAxisFilterAndGeometry_IsTheModel) {
  for (int trial = 0; trial < 60; ++trial) {
    const auto axes = static_cast<std::size_t>(pick(random_, 1, 5));
    const int row_axis = static_cast<int>(pick(random_, 0, static_cast<std::int64_t>(axes) - 1));
    const DType dtype = all_types()[static_cast<std::size_t>(pick(random_, 0, 11))];
    Model model = random_model(random_, extents(axes, 9), {dtype, size_of(dtype) > 1 && pick(random_, 0, 1) == 1});
    Storage storage;
    storage.chunk = extents(axes, 12);
    storage.gzip = static_cast<int>(pick(random_, 0, 2));
    storage.shuffle = pick(random_, 0, 1) == 1;
    storage.fletcher = pick(random_, 0, 1) == 1;
    storage.latest = pick(random_, 0, 1) == 1;
    if (pick(random_, 0, 2) == 0) {
      storage.more = [](hid_t list) { H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS); };
    }
    storage.fill.assign(model.width(), std::byte{0x5A});
    storage.fill[0] = std::byte{1};
    if (pick(random_, 0, 2) == 0) storage.written_rows = pick(random_, 1, model.shape[0]);
    SCOPED_TRACE(describe(model.shape) + "axis " + std::to_string(row_axis) + " in chunks " + describe(storage.chunk) +
                 "seed " + std::to_string(seed_));
    write_model(folder_ / "a.h5", model, storage);
    const auto source = open(row_axis);
    ASSERT_NE(source->info().way, "read by HDF5 in a process of its own");
    const std::int64_t rows = source->info().rows;
    EXPECT_TRUE(reads_as(*source, model, {0, rows}));
    for (int i = 0; i < 5; ++i) {
      const std::int64_t first = pick(random_, 0, rows);
      EXPECT_TRUE(reads_as(*source, model, {first, pick(random_, 0, rows - first)}));
    }
    const auto prepared = open(row_axis);
    const std::int64_t block_rows = pick(random_, 1, rows);
    prepared->prepare(reading(*prepared, block_rows, 1 << 20));
    EXPECT_TRUE(read_blocks(*prepared, model, block_rows, 3)) << "blocks of " << block_rows;
  }
}

TEST_F(Decoded, StorageChunksThatSkippedFilters_AreReadByTheirMasks) {
  Model model = random_model(random_, {30, 8}, {DType::i32, false});
  write_model(folder_ / "a.h5", model, {.chunk = {10, 8}, .shuffle = true, .gzip = 4, .written_rows = 0});
  // as HDF5 does where a filter that is optional fails: the middle storage chunk is stored as it is
  const hid_t file = H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, "/X", H5P_DEFAULT);
  const Model written = random_model(random_, {30, 8}, {DType::i32, false});
  const hsize_t middle[] = {10, 0};
  ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 3, middle, 320, written.bytes.data() + 320), 0);
  H5Dclose(dataset);
  H5Fclose(file);
  std::copy(written.bytes.begin() + 320, written.bytes.begin() + 640, model.bytes.begin() + 320);
  const auto source = open();
  EXPECT_TRUE(reads_as(*source, model, {0, 30}));
  EXPECT_TRUE(reads_as(*source, model, {12, 5}));
}

TEST_F(Decoded, BlocksThatShareStorageChunks_DecodeEachOnce) {
  Model model = random_model(random_, {4000, 30}, {DType::f32, false});
  for (const std::vector<std::int64_t>& chunk : {std::vector<std::int64_t>{4000, 1}, {1000, 30}, {700, 7}}) {
    write_model(folder_ / "a.h5", model, {.chunk = chunk, .shuffle = true, .gzip = 1});
    for (const std::int64_t block_rows : {64, 250, 900, 1000}) {
      for (const int row_axis : {0, 1}) {
        SCOPED_TRACE(describe(chunk) + "blocks of " + std::to_string(block_rows) + " axis " + std::to_string(row_axis));
        const std::int64_t rows = row_axis == 0 ? block_rows : block_rows / 60;
        const auto source = open(row_axis);
        source->prepare(reading(*source, rows, 64 << 20));
        EXPECT_TRUE(source->info().warnings.empty());
        EXPECT_TRUE(read_blocks(*source, model, rows, 1));
        EXPECT_EQ(source->bytes_read(), stored_bytes());
      }
    }
  }
}

TEST_F(Decoded, BlocksOfWholeStorageChunks_TakeNoMemoryBesides) {
  Model model = random_model(random_, {1000, 10}, {DType::f32, false});
  write_model(folder_ / "a.h5", model, {.chunk = {100, 4}, .gzip = 1});
  const auto source = open();
  source->prepare(reading(*source, 300, 0));
  EXPECT_EQ(source->info().shared_bytes, 0);
  EXPECT_TRUE(source->info().warnings.empty());
  EXPECT_TRUE(read_blocks(*source, model, 300, 4));
  EXPECT_EQ(source->bytes_read(), stored_bytes());
}

TEST_F(Decoded, SharedStorageChunksThatMemoryDoesNotHold_AreDecodedAgainWithAWarning) {
  Model model = random_model(random_, {900, 10}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {.chunk = {300, 5}, .gzip = 1});
  const auto source = open();
  source->prepare(reading(*source, 150, 23999));  // a band holds 24000 bytes
  ASSERT_EQ(source->info().warnings.size(), 1U);
  const std::string& warning = source->info().warnings[0];
  EXPECT_NE(warning.find("a.h5:/X: "), std::string::npos) << warning;
  EXPECT_NE(warning.find("300 rows"), std::string::npos) << warning;
  EXPECT_NE(warning.find("h5repack -l /X:CHUNK=900x10 "), std::string::npos) << warning;
  EXPECT_TRUE(read_blocks(*source, model, 150, 3));
  EXPECT_EQ(source->bytes_read(), 2 * stored_bytes());
  const auto roomy = open();
  roomy->prepare(reading(*roomy, 150, 24000));
  EXPECT_TRUE(roomy->info().warnings.empty());
  EXPECT_EQ(roomy->info().shared_bytes, 24000);
}

TEST_F(Decoded, SharedStorageChunksThatWouldBeDecodedManyTimes_AreRefusedWithTheCure) {
  Model model = random_model(random_, {900, 10}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {.chunk = {900, 1}, .gzip = 1});
  const auto source = open();
  const Error e = error_of([&] { source->prepare(reading(*source, 10, 1000)); });
  EXPECT_EQ(e.code(), ExitCode::input);
  EXPECT_FALSE(e.row().has_value());
  EXPECT_NE(std::string(e.what()).find("h5repack -l /X:CHUNK=900x10 "), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("--memory"), std::string::npos) << e.what();
}

TEST_F(Decoded, SharedStorageChunksThatMemoryDoesNotHold_AreSpilledToScratchAndDecodedOnce) {
  for (int trial = 0; trial < 20; ++trial) {
    const auto axes = static_cast<std::size_t>(pick(random_, 1, 4));
    const int row_axis = static_cast<int>(pick(random_, 0, static_cast<std::int64_t>(axes) - 1));
    const DType dtype = all_types()[static_cast<std::size_t>(pick(random_, 0, 11))];
    std::vector<std::int64_t> shape = extents(axes, 9);
    shape[static_cast<std::size_t>(row_axis)] = 90;
    Model model = random_model(random_, shape, {dtype, false});
    Storage storage;
    storage.chunk = extents(axes, 12);
    storage.chunk[static_cast<std::size_t>(row_axis)] = 40;
    storage.gzip = static_cast<int>(pick(random_, 0, 1));
    storage.shuffle = true;
    storage.fill.assign(model.width(), std::byte{0x5A});
    if (trial % 3 == 0) storage.written_rows = pick(random_, 1, model.shape[0]);
    SCOPED_TRACE(describe(model.shape) + "axis " + std::to_string(row_axis) + " in chunks " + describe(storage.chunk) +
                 "seed " + std::to_string(seed_));
    write_model(folder_ / "a.h5", model, storage);
    const auto source = open(row_axis);
    ReadingPlan plan = reading(*source, 7, 0);
    plan.scratch = folder_ / "";
    source->prepare(plan);
    EXPECT_TRUE(source->info().warnings.empty());
    EXPECT_EQ(source->info().shared_bytes, 0);
    EXPECT_TRUE(read_blocks(*source, model, 7, 1));
    EXPECT_EQ(source->bytes_read(), stored_bytes());
    EXPECT_TRUE(read_blocks(*source, model, 7, 4));
  }
}

TEST_F(Decoded, AScratchFolderThatIsNotThere_IsAUsageErrorNamingIt) {
  Model model = random_model(random_, {900, 10}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {.chunk = {900, 1}, .gzip = 1});
  const auto source = open();
  ReadingPlan plan = reading(*source, 10, 1000);
  plan.scratch = folder_ / "nowhere";
  const Error e = error_of([&] { source->prepare(plan); });
  EXPECT_EQ(e.code(), ExitCode::usage);
  EXPECT_NE(std::string(e.what()).find("nowhere"), std::string::npos) << e.what();
}

TEST_F(Decoded, ADamagedStorageChunk_IsNamedByItsFirstElementAndRows) {
  Model model = random_model(random_, {100, 12}, {DType::f64, false});
  write_model(folder_ / "a.h5", model, {.chunk = {10, 6}, .gzip = 1});
  std::string bytes;
  {
    std::ifstream in(folder_ / "a.h5", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const hid_t file = H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, "/X", H5P_DEFAULT);
  const hsize_t first[] = {50, 6};
  unsigned mask = 0;
  haddr_t address = 0;
  hsize_t size = 0;
  ASSERT_GE(H5Dget_chunk_info_by_coord(dataset, first, &mask, &address, &size), 0);
  H5Dclose(dataset);
  H5Fclose(file);
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(address), 40, '\x55');
  std::ofstream(folder_ / "a.h5", std::ios::binary) << bytes;
  for (const bool prepared : {false, true}) {
    const auto source = open();
    if (prepared) source->prepare(reading(*source, 7, 1 << 20));
    EXPECT_TRUE(reads_as(*source, model, {0, 50}));
    EXPECT_TRUE(reads_as(*source, model, {60, 40}));
    const PoisonedBuffer buffer(source->bytes_for({45, 10}));
    const Error e = error_of([&] { source->read({45, 10}, buffer.span()); });
    EXPECT_EQ(e.code(), ExitCode::input);
    EXPECT_FALSE(e.row().has_value()) << "ranks with earlier rows would go on";
    EXPECT_NE(std::string(e.what()).find("a.h5:/X: storage chunk (50, 6) (rows 50 to 59): "), std::string::npos)
        << e.what();
  }
}

TEST_F(Decoded, LargeTransposedStorageChunks_AreTheModel) {
  Model model = random_model(random_, {300, 1200}, {DType::u16, true});
  write_model(folder_ / "a.h5", model, {.chunk = {130, 500}, .gzip = 1});
  const auto source = open(1);
  EXPECT_EQ(source->info().storage_chunk_rows, 500);
  source->prepare(reading(*source, 100, 64 << 20));
  EXPECT_TRUE(read_blocks(*source, model, 100, 4));
}

TEST_F(Decoded, StorageChunksMuchLargerThanTheDataSet_AreRead) {
  Model model = random_model(random_, {3, 2}, {DType::f32, false});
  write_model(folder_ / "a.h5", model, {.chunk = {1000, 1000}, .gzip = 1});
  for (const int row_axis : {0, 1}) {
    const auto source = open(row_axis);
    EXPECT_TRUE(reads_as(*source, model, {0, source->info().rows}));
    EXPECT_TRUE(reads_as(*source, model, {1, 1}));
  }
}

}  // namespace
}  // namespace rowmill::test
