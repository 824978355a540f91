// Sources that are read by MPI-IO give, on any number of ranks, the bytes that lie in the file.
#include "io/mpiio/mpiio_source.hpp"

#include <mpi.h>

#include <future>
#include <optional>
#include <thread>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

using Mode = MpiThread::Mode;

std::vector<std::byte> broadcast(std::vector<std::byte> bytes) {
  auto size = static_cast<std::int64_t>(bytes.size());
  MPI_Bcast(&size, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  bytes.resize(static_cast<std::size_t>(size));
  MPI_Bcast(bytes.data(), static_cast<int>(size), MPI_BYTE, 0, MPI_COMM_WORLD);
  return bytes;
}

class MpiioOnRanks : public ::testing::TestWithParam<Mode> {
 protected:
  MpiioOnRanks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    std::uint64_t seed = fresh_seed();
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    seed_ = seed;
    random_.seed(seed);                                  // the same on all ranks
    own_.seed(seed + static_cast<unsigned>(rank_) + 1);  // of this rank
    if (rank_ == 0) folder_.emplace();
    std::string name = rank_ == 0 ? folder_->path().string() : std::string();
    name.resize(256);
    MPI_Bcast(name.data(), 256, MPI_CHAR, 0, MPI_COMM_WORLD);
    folder_name_ = name.c_str();
  }
  /// Rank 0's folder goes when all have done with it.
  ~MpiioOnRanks() override { MPI_Barrier(MPI_COMM_WORLD); }

  /// A new name: what ranks have opened together stays open.
  void name_file() { path_ = folder_name_ + "/" + std::to_string(++files_) + ".h5"; }

  void write(Model& model, const Storage& storage) {
    name_file();
    if (rank_ == 0) write_model(path_, model, storage);
    MPI_Barrier(MPI_COMM_WORLD);
    fill_unwritten(model, storage);
  }

  /// `body` on a thread of its own, while this one does MPI.
  static void serve(MpiThread& thread, const std::function<void()>& body) {
    auto done = std::async(std::launch::async, body);
    while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      thread.serve(std::chrono::milliseconds(1));
    done.get();
  }

  std::unique_ptr<Source> open(MpiThread& thread, int row_axis = 0, const std::string& dataset = "/X") {
    InputRequest request = request_for(path_ + ":" + dataset, row_axis);
    std::vector<std::byte> plan;
    if (rank_ == 0) plan = plan_input(request);
    plan = broadcast(std::move(plan));
    request.mpi = &thread;
    std::unique_ptr<Source> source;
    serve(thread, [&] { source = make_source(plan, request); });
    return source;
  }

  /// Any number of reads, none on some ranks, by two threads.
  void expect_reads(MpiThread& thread, Source& source, const Model& model) {
    const std::int64_t rows = source.info().rows, reads = pick(own_, 0, 3);
    std::vector<RowRange> ranges;
    for (std::int64_t i = 0; i < reads; ++i) {
      const std::int64_t first = pick(own_, 0, rows - 1);
      ranges.push_back({first, pick(own_, 1, rows - first)});
    }
    thread.begin_pass();
    const auto read_some = [&](std::size_t from) {
      for (std::size_t i = from; i < ranges.size(); i += 2) EXPECT_TRUE(reads_as(source, model, ranges[i]));
    };
    serve(thread, [&] {
      auto other = std::async(std::launch::async, read_some, 1);
      read_some(0);
    });
    thread.end_pass([] {});
  }

  void expect_whole(const Model& model, int row_axis = 0) {
    MpiThread thread(GetParam());
    const auto source = open(thread, row_axis);
    EXPECT_NE(source->info().way.find("MPI-IO"), std::string::npos) << source->info().way;
    expect_reads(thread, *source, model);
    thread.begin_pass();
    serve(thread, [&] { EXPECT_TRUE(reads_as(*source, model, {0, source->info().rows})); });
    thread.end_pass([] {});
  }

  std::string why_not(int row_axis = 0, const std::string& dataset = "/X") {
    MpiThread thread(GetParam());
    const Error error = error_of([&] { open(thread, row_axis, dataset); });
    EXPECT_EQ(error.code(), ExitCode::input) << error.what();
    return error.what();
  }

  int rank_ = 0, size_ = 1;
  std::uint64_t seed_ = 0;
  std::mt19937_64 random_, own_;
  std::optional<ScratchFolder> folder_;
  std::string folder_name_, path_;
  int files_ = 0;
};

std::vector<std::int64_t> extents(std::mt19937_64& random, std::size_t axes, std::int64_t most) {
  std::vector<std::int64_t> result(axes);
  for (auto& extent : result) extent = pick(random, 1, most);
  return result;
}

TEST_P(MpiioOnRanks, EveryTypeInEitherByteOrder) {
  for (const DType dtype : all_types()) {
    const bool swapped = size_of(dtype) > 1 && pick(random_, 0, 1) == 1;
    SCOPED_TRACE(std::string(name_of(dtype)) + (swapped ? " swapped" : "") + " seed " + std::to_string(seed_));
    Model model = random_model(random_, {57, 5}, {dtype, swapped});
    write(model, {});
    expect_whole(model);
  }
}

TEST_P(MpiioOnRanks, StorageChunksOfAnyExtents_WithFiltersOrWithout) {
  for (int trial = 0; trial < 8; ++trial) {
    Model model = random_model(random_, extents(random_, 2, 60), {DType::f32, false});
    Storage storage;
    storage.chunk = extents(random_, 2, 70);  // wider than the data set, too
    storage.gzip = trial % 3;
    storage.shuffle = trial % 2 == 1;
    storage.fletcher = trial % 5 == 0;
    storage.latest = trial % 4 == 3;
    if (trial % 3 == 0) storage.written_rows = pick(random_, 1, model.shape[0]);
    storage.fill.assign(model.width(), std::byte{0x3C});
    SCOPED_TRACE(describe(model.shape) + "in chunks " + describe(storage.chunk) + "seed " + std::to_string(seed_));
    write(model, storage);
    expect_whole(model);
  }
}

TEST_P(MpiioOnRanks, AnyAxisAsRows) {
  for (int axis = 0; axis < 3; ++axis) {
    for (const bool chunked : {false, true}) {
      SCOPED_TRACE("axis " + std::to_string(axis) + " seed " + std::to_string(seed_));
      Model model = random_model(random_, {11, 13, 7}, {DType::i16, false});
      Storage storage;
      if (chunked) storage.chunk = {4, 5, 3};
      if (chunked) storage.gzip = 1;
      write(model, storage);
      expect_whole(model, axis);
    }
  }
}

TEST_P(MpiioOnRanks, ColumnsThatGoThroughScratchPieceByPiece) {
  Model model = random_model(random_, {3, 300'000}, {DType::f64, false});
  write(model, {});
  expect_whole(model, 1);
}

TEST_P(MpiioOnRanks, WhatTheHelperReadsElse_CompactScaleOffsetAndNBit) {
  Model model = random_model(random_, {40, 3}, {DType::u16, false});
  write(model, {.compact = true});
  expect_whole(model);
  Storage storage;
  storage.chunk = {7, 2};
  storage.more = [](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT); };
  write(model, storage);
  expect_whole(model);
  storage.more = [](hid_t list) { H5Pset_nbit(list); };
  write(model, storage);
  expect_whole(model);
}

TEST_P(MpiioOnRanks, OddIntegers_AreWidenedAsTheHelperWidensThem) {
  Model model{{29, 3}, {DType::i32, false}, {}};
  std::vector<std::int32_t> values(87);
  for (auto& value : values) value = static_cast<std::int32_t>(pick(random_, -(1 << 23), (1 << 23) - 1));
  model.bytes.resize(values.size() * sizeof(std::int32_t));
  std::memcpy(model.bytes.data(), values.data(), model.bytes.size());
  name_file();
  if (rank_ == 0) {
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t shape[] = {29, 3};
    const hid_t type = H5Tcopy(H5T_STD_I32BE), space = H5Screate_simple(2, shape, nullptr);
    H5Tset_precision(type, 24);
    H5Tset_size(type, 3);
    const hid_t dataset = H5Dcreate2(file, "/X", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    for (const hid_t id : {dataset, space, type, file}) H5Idec_ref(id);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expect_whole(model);
}

TEST_P(MpiioOnRanks, PartsNeverWrittenWithoutAFillValue_AreZero) {
  Model model = random_model(random_, {50, 4}, {DType::f32, false});
  Storage storage;
  storage.chunk = {8, 4};
  storage.written_rows = 16;
  storage.more = [](hid_t list) { H5Pset_fill_time(list, H5D_FILL_TIME_NEVER); };
  write(model, storage);
  expect_whole(model);
}

TEST_P(MpiioOnRanks, WhatLiesOutsideTheFile_IsRefusedOnAllRanks) {
  Model model = random_model(random_, {6, 4}, {DType::f32, false});
  write(model, {});
  const std::string inner = std::filesystem::path(path_).filename();
  name_file();
  if (rank_ == 0) {
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(inner.c_str(), "/X", file, "/link", H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t shape[] = {6, 4};
    const hid_t space = H5Screate_simple(2, shape, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(list, space, inner.c_str(), "/X", space);
    const hid_t dataset = H5Dcreate2(file, "/virtual", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT);
    const hid_t raw = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(raw, inner.c_str(), 0, H5F_UNLIMITED);
    const hid_t outside = H5Dcreate2(file, "/raw", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, raw, H5P_DEFAULT);
    for (const hid_t id : {outside, raw, dataset, list, space, file}) H5Idec_ref(id);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_NE(why_not(0, "/link").find("in the file itself"), std::string::npos);
  EXPECT_NE(why_not(0, "/virtual").find("it is virtual"), std::string::npos);
  const std::string raw = why_not(0, "/raw");
  EXPECT_NE(raw.find("other files; use --io direct"), std::string::npos) << raw;
}

TEST_P(MpiioOnRanks, FiltersThatHdf5DoesNotHave_AreRefusedByNumber) {
  Model model = random_model(random_, {30, 4}, {DType::f32, false});
  Storage storage;
  storage.chunk = {8, 4};
  storage.more = [](hid_t list) { H5Pset_filter(list, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr); };
  write(model, storage);
  const std::string why = why_not();
  EXPECT_NE(why.find("filter 32000"), std::string::npos) << why;
  EXPECT_NE(why.find("use --io direct"), std::string::npos) << why;
}

TEST_P(MpiioOnRanks, AFileThatOneRankDoesNotFind_IsRefusedOnAllOfThem) {
  Model model = random_model(random_, {30, 4}, {DType::f32, false});
  write(model, {});
  InputRequest request = request_for(path_ + ":/X");
  const std::vector<std::byte> planned = broadcast(rank_ == 0 ? plan_input(request) : std::vector<std::byte>());
  InputPlan plan = deserialise_plan(planned);
  if (rank_ == size_ - 1) plan.path += ".gone";
  MpiThread thread(GetParam());
  const auto open_it = [&] { serve(thread, [&] { const MpiioSource source(plan, thread, 1 << 30); }); };
  if (GetParam() == Mode::independent && rank_ != size_ - 1) {
    EXPECT_NO_THROW(open_it());
  } else {
    EXPECT_NE(std::string(error_of(open_it).what()).find(".gone"), std::string::npos);
  }
}

TEST_P(MpiioOnRanks, ARankThatLeavesInTheMiddle_HoldsNobody) {
  Model model = random_model(random_, {64, 4}, {DType::f32, false});
  write(model, {.chunk = {8, 4}, .gzip = 1});
  MpiThread thread(GetParam());
  const auto source = open(thread);
  const bool fails = rank_ == size_ / 2;
  thread.begin_pass();
  const auto read_much = [&] {
    serve(thread, [&] {
      for (int i = 0; i < (fails ? 3 : 40); ++i) EXPECT_TRUE(reads_as(*source, model, {i % 60, 4}));
    });
  };
  if (fails || GetParam() == Mode::independent || size_ == 1) {
    read_much();
    thread.leave([] {});
  } else {
    EXPECT_NE(std::string(error_of(read_much).what()).find("ended"), std::string::npos);
    EXPECT_TRUE(thread.was_left());
    thread.leave([] {});
  }
  EXPECT_THROW(serve(thread, [&] { reads_as(*source, model, {0, 1}); }), Error);
}

TEST_P(MpiioOnRanks, WhoWaitsWhenItIsClosed_IsThrownAnError) {
  Model model = random_model(random_, {64, 4}, {DType::f32, false});
  write(model, {});
  MpiThread thread(GetParam());
  const auto source = open(thread);
  thread.begin_pass();
  // nobody serves it
  auto reading = std::async(std::launch::async, [&] { return reads_as(*source, model, {0, 4}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  thread.leave([] {});
  EXPECT_THROW(reading.get(), Error);
}

INSTANTIATE_TEST_SUITE_P(Ways, MpiioOnRanks, ::testing::Values(Mode::independent, Mode::collective),
                         [](const auto& way) { return way.param == Mode::collective ? "collective" : "independent"; });

}  // namespace
}  // namespace rowmill::test
