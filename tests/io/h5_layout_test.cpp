// HDF5 data sets of every layout, type, byte order and geometry, read at random places, against a model in memory.
#include <future>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

struct Random {
  std::uint64_t seed = fresh_seed();
  std::mt19937_64 engine{seed};
};

std::vector<std::int64_t> random_extents(std::mt19937_64& random, std::size_t axes, std::int64_t most) {
  std::vector<std::int64_t> extents(axes);
  for (auto& extent : extents) extent = pick(random, 1, most);
  return extents;
}

ElementType random_type(std::mt19937_64& random) {
  const DType type = all_types()[static_cast<std::size_t>(pick(random, 0, 11))];
  return {type, size_of(type) > 1 && pick(random, 0, 1) == 1};
}

void expect_random_reads(std::mt19937_64& random, Source& source, const Model& model, int reads = 6) {
  const std::int64_t rows = source.info().rows;
  ASSERT_TRUE(reads_as(source, model, {0, rows}));
  for (int i = 0; i < reads; ++i) {
    const std::int64_t first = pick(random, 0, rows), count = pick(random, 0, rows - first);
    EXPECT_TRUE(reads_as(source, model, {first, count})) << "rows " << first << " + " << count;
  }
}

TEST(H5Layout, Contiguous_OfEveryTypeAndByteOrder_IsReadByPread) {
  const ScratchFolder folder;
  Random random;
  for (const DType type : all_types()) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(name_of(type) + " seed " + std::to_string(random.seed));
      if (swapped && size_of(type) == 1) continue;
      Model model =
          random_model(random.engine, {pick(random.engine, 1, 40), pick(random.engine, 1, 20)}, {type, swapped});
      write_model(folder / "a.h5", model, {});
      const auto source = open_source(request_for(folder / "a.h5:/X"));
      EXPECT_EQ(source->info().way, "read directly");
      EXPECT_EQ(source->info().type, model.type);
      expect_random_reads(random.engine, *source, model, 3);
    }
  }
}

TEST(H5Layout, Chunked_OfAnyGeometry_IsReadAtItsAddresses) {
  const ScratchFolder folder;
  Random random;
  for (int trial = 0; trial < 40; ++trial) {
    const auto axes = static_cast<std::size_t>(pick(random.engine, 1, 4));
    Model model = random_model(random.engine, random_extents(random.engine, axes, 14), random_type(random.engine));
    Storage storage;
    storage.chunk = random_extents(random.engine, axes, 17);  // wider than the data set, too
    storage.latest = pick(random.engine, 0, 1) == 1;
    if (pick(random.engine, 0, 2) == 0) storage.written_rows = pick(random.engine, 1, model.shape[0]);
    storage.fill.assign(model.width(), std::byte{0x3C});
    SCOPED_TRACE(describe(model.shape) + "in chunks " + describe(storage.chunk) + "seed " +
                 std::to_string(random.seed));
    write_model(folder / "a.h5", model, storage);
    const auto source = open_source(request_for(folder / "a.h5:/X"));
    EXPECT_EQ(source->info().way, "storage chunks read directly");
    EXPECT_EQ(source->info().storage_chunk_rows, storage.chunk[0]);
    expect_random_reads(random.engine, *source, model);
  }
}

TEST(H5Layout, Chunked_WithRowsLongerThanScratch_IsReadPartByPart) {
  const ScratchFolder folder;
  Random random;
  // one row of a storage chunk is more than 1 MiB
  Model model = random_model(random.engine, {5, 3, 150000}, {DType::f64, false});
  write_model(folder / "a.h5", model, {.chunk = {2, 2, 140000}});
  const auto source = open_source(request_for(folder / "a.h5:/X"));
  EXPECT_EQ(source->info().way, "storage chunks read directly");
  expect_random_reads(random.engine, *source, model, 2);
}

TEST(H5Layout, Filtered_OfAnyGeometry_IsDecodedHere) {
  const ScratchFolder folder;
  Random random;
  for (int trial = 0; trial < 20; ++trial) {
    const auto axes = static_cast<std::size_t>(pick(random.engine, 1, 4));
    Model model = random_model(random.engine, random_extents(random.engine, axes, 12), random_type(random.engine));
    Storage storage;
    storage.chunk = random_extents(random.engine, axes, 15);
    storage.gzip = 4;
    storage.shuffle = pick(random.engine, 0, 1) == 1;
    storage.fletcher = pick(random.engine, 0, 1) == 1;
    if (pick(random.engine, 0, 2) == 0) storage.written_rows = pick(random.engine, 1, model.shape[0]);
    SCOPED_TRACE(describe(model.shape) + "in chunks " + describe(storage.chunk) + "seed " +
                 std::to_string(random.seed));
    write_model(folder / "a.h5", model, storage);
    const auto source = open_source(request_for(folder / "a.h5:/X"));
    EXPECT_EQ(source->info().way, "storage chunks, decoded in parallel");
    expect_random_reads(random.engine, *source, model);
  }
}

TEST(H5Layout, AnyRowAxis_OfAnyLayout_PutsTheOthersBehindInOrder) {
  const ScratchFolder folder;
  Random random;
  for (int trial = 0; trial < 30; ++trial) {
    const auto axes = static_cast<std::size_t>(pick(random.engine, 2, 4));
    const int row_axis = static_cast<int>(pick(random.engine, 1, static_cast<std::int64_t>(axes) - 1));
    Model model = random_model(random.engine, random_extents(random.engine, axes, 11), random_type(random.engine));
    Storage storage;
    if (trial % 2 == 0) storage.chunk = random_extents(random.engine, axes, 7);
    if (trial % 4 == 0) storage.gzip = 1;
    SCOPED_TRACE(describe(model.shape) + "axis " + std::to_string(row_axis) + " seed " + std::to_string(random.seed));
    write_model(folder / "a.h5", model, storage);
    const auto source = open_source(request_for(folder / "a.h5:/X", row_axis));
    EXPECT_EQ(source->info().rows, model.shape[static_cast<std::size_t>(row_axis)]);
    expect_random_reads(random.engine, *source, model);
  }
}

TEST(H5Layout, RowAxisOfALargeContiguousDataSet_IsReadInStretches) {
  const ScratchFolder folder;
  Random random;
  // short runs far apart, short runs close together, long runs
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{400, 9000, 1}, {90000, 3, 2}, {7, 5, 3000}, {3, 4, 200000}}) {
    SCOPED_TRACE(describe(shape) + "seed " + std::to_string(random.seed));
    Model model = random_model(random.engine, shape, {DType::u16, true});
    write_model(folder / "a.h5", model, {});
    const auto source = open_source(request_for(folder / "a.h5:/X", 1));
    EXPECT_EQ(source->info().way, "read directly");
    expect_random_reads(random.engine, *source, model, 2);
  }
}

TEST(H5Layout, CompactAndUserBlockAndNeverWritten_AreRead) {
  const ScratchFolder folder;
  Random random;
  const ElementType type{DType::i32, true};
  const auto check = [&](const Storage& storage, const std::string& way) {
    SCOPED_TRACE(way + " seed " + std::to_string(random.seed));
    Model model = random_model(random.engine, {13, 7}, type);
    write_model(folder / "a.h5", model, storage);
    const auto source = open_source(request_for(folder / "a.h5:/X"));
    EXPECT_EQ(source->info().way, way);
    expect_random_reads(random.engine, *source, model);
  };
  const std::vector<std::byte> fill = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  check({.compact = true}, "read by HDF5 in a process of its own");
  check({.user_block = 1024}, "read directly");
  check({.chunk = {4, 3}, .user_block = 512}, "storage chunks read directly");
  check({.chunk = {4, 3}, .gzip = 3, .user_block = 2048}, "storage chunks, decoded in parallel");
  const auto n_bit = [](hid_t list) { H5Pset_nbit(list); };
  check({.chunk = {4, 3}, .more = n_bit}, "read by HDF5 in a process of its own");
  check({.written_rows = 0, .fill = fill}, "fill value, nothing is stored");
  check({.chunk = {5, 2}, .written_rows = 0, .fill = fill}, "fill value, nothing is stored");
  check({.chunk = {5, 2}, .gzip = 3, .written_rows = 0, .fill = fill}, "fill value, nothing is stored");
}

TEST(H5Layout, MoreStorageChunksThanAreListed_AreFetchedByTheHelperAndDecodedHere) {
  const ScratchFolder folder;
  Random random;
  for (const int gzip : {0, 1}) {
    for (const int row_axis : {0, 1}) {
      Model model = random_model(random.engine, {70, 70}, {DType::u8, false});
      write_model(folder / "a.h5", model, {.chunk = {1, 1}, .gzip = gzip, .written_rows = 69});
      const auto source = open_source(request_for(folder / "a.h5:/X", row_axis));
      EXPECT_EQ(source->info().way, "storage chunks through a process of HDF5, decoded in parallel");
      expect_random_reads(random.engine, *source, model, 2);
    }
  }
}

TEST(H5Layout, PartsNeverWrittenWithoutFillValue_AreZeroEvenInAUsedBuffer) {
  const ScratchFolder folder;
  Random random;
  const auto never = [](hid_t list) { H5Pset_fill_time(list, H5D_FILL_TIME_NEVER); };
  for (const int gzip : {0, 1}) {
    Model model = random_model(random.engine, {24, 3}, {DType::f32, false});
    write_model(folder / "a.h5", model, {.chunk = {4, 3}, .gzip = gzip, .written_rows = 8, .more = never});
    const auto source = open_source(request_for(folder / "a.h5:/X"));
    ASSERT_TRUE(reads_as(*source, model, {0, 8}));
    EXPECT_TRUE(reads_as(*source, model, {8, 8}));
    EXPECT_TRUE(reads_as(*source, model, {4, 20}));
    ASSERT_EQ(source->info().warnings.size(), 1U);
    EXPECT_NE(source->info().warnings[0].find("a.h5:/X: "), std::string::npos) << source->info().warnings[0];
  }
}

TEST(H5Layout, SeveralThreads_ReadTheSameSource) {
  const ScratchFolder folder;
  Random random;
  for (const int gzip : {0, 1}) {
    Model model = random_model(random.engine, {1000, 33}, {DType::f32, true});
    write_model(folder / "a.h5", model, {.chunk = {37, 10}, .gzip = gzip});
    const auto source = open_source(request_for(folder / "a.h5:/X"));
    std::vector<std::future<bool>> readers;
    for (int t = 0; t < 4; ++t) {
      readers.push_back(std::async(std::launch::async, [&, t] {
        std::mt19937_64 mine(random.seed + static_cast<std::uint64_t>(t));
        bool same = true;
        for (int i = 0; i < 20; ++i) {
          const std::int64_t first = pick(mine, 0, 999);
          same = same && static_cast<bool>(reads_as(*source, model, {first, pick(mine, 0, 1000 - first)}));
        }
        return same;
      }));
    }
    for (auto& reader : readers) EXPECT_TRUE(reader.get()) << "gzip " << gzip << " seed " << random.seed;
  }
}

TEST(H5Layout, AHelperStartedByAThreadThatIsGone_GoesOnReading) {
  const ScratchFolder folder;
  Random random;
  Model model = random_model(random.engine, {40, 3}, {DType::i64, false});
  write_model(folder / "a.h5", model, {.chunk = {7, 3}, .gzip = 1});
  const auto source = open_source(request_for(folder / "a.h5:/X"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::async(std::launch::async, [&] { return reads_as(*source, model, {0, 40}); }).get());
  }
}

/// What HDF5 has decompressed is kept for the next rows, however large a band of storage chunks is.
TEST(H5Layout, TallStorageChunksReadByHdf5_AreAskedOfTheFileOnce) {
  const ScratchFolder folder;
  std::mt19937_64 random(fresh_seed());
  Model model{{20000, 100}, {DType::i32, false}, {}};
  for (std::int64_t i = 0; i < model.elements(); ++i) {
    const auto value = static_cast<std::int32_t>(random() % 1000);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    model.bytes.insert(model.bytes.end(), bytes, bytes + sizeof value);
  }
  write_model(folder / "a.h5", model, {.chunk = {20000, 2}, .more = [](hid_t list) {
                                         H5Pset_scaleoffset(list, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
                                       }});
  const auto source = open_source(request_for(folder / "a.h5"));
  for (std::int64_t first = 0; first < 20000; first += 2000) {
    const PoisonedBuffer buffer(source->bytes_for({first, 2000}));
    const auto rows = source->read({first, 2000}, buffer.span());
    const auto wanted = model.rows(0, {first, 2000});
    EXPECT_EQ(std::memcmp(std::get<DenseRows>(rows.rows).data, wanted.data(), wanted.size()), 0) << first;
  }
  EXPECT_LT(source->bytes_read(), 2 * source->info().file_bytes);
}

TEST(H5Layout, BlocksLowerThanStorageChunks_AreAskedOfTheFileOnce) {
  const ScratchFolder folder;
  Random random;
  Model model = random_model(random.engine, {4096, 16}, {DType::f32, false});
  write_model(folder / "a.h5", model, {.chunk = {4096, 1}, .gzip = 1});
  const auto source = open_source(request_for(folder / "a.h5:/X"));
  EXPECT_EQ(source->info().storage_chunk_rows, 4096);
  for (std::int64_t first = 0; first < 4096; first += 64) ASSERT_TRUE(reads_as(*source, model, {first, 64}));
  EXPECT_LT(source->bytes_read(), 2 * source->info().file_bytes);
}

}  // namespace
}  // namespace rowmill::test
