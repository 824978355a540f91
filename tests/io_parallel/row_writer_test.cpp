// All ranks write one file.
#include "io/row_writer.hpp"

#include <mpi.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "core/error.hpp"
#include "tests/io_parallel/row_fixture.hpp"

namespace rowmill::testing {
namespace {

struct GivenUp : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class RowWriterOnRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char name[] = "/tmp/rowmill_rows_XXXXXX";
    if (rank == 0 && ::mkdtemp(name) == nullptr) throw std::runtime_error("no folder");
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    folder = name;
    path = folder + "/out.h5";
    if (rank == 0) seed = std::random_device{}();
    MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    options.alone = false;
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::filesystem::remove_all(folder);
  }

  /// Cuts [0, rows) into random pieces and gives each to a random one of the first `writers` ranks: the same on all.
  std::vector<RowRange> my_pieces(std::int64_t rows, int writers) const {
    std::mt19937 random(seed);
    std::vector<RowRange> mine;
    for (std::int64_t first = 0; first < rows;) {
      const std::int64_t count = std::min<std::int64_t>(1 + random() % 40, rows - first);
      if (static_cast<int>(random() % static_cast<unsigned>(writers)) == rank) mine.push_back({first, count});
      first += count;
    }
    std::shuffle(mine.begin(), mine.end(), std::mt19937(seed + static_cast<unsigned>(rank)));
    return mine;
  }

  template <typename Given>
  void write_and_expect(const RowOutput& output, std::int64_t rows, int writers) {
    RowWriter writer(path, output, rows, options);
    for (const RowRange piece : my_pieces(rows, writers)) writer.write(piece, values_of<Given>(piece, output.width));
    writer.finish();
    // finish is collective: what it leaves is there on every rank.
    EXPECT_EQ(files_in(folder), std::vector<std::string>{"out.h5"}) << "seed " << seed;
    if (rank == 0) expect_rows(path, output.name, rows, output.width, output.as_float32 ? 4 : 8);
  }

  void expect_nothing_stays() {
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_TRUE(files_in(folder).empty());
  }

  int rank = 0, size = 1;
  unsigned seed = 0;
  std::string folder, path;
  RowWriterOptions options;
};

TEST_F(RowWriterOnRanks, UnequalNumbersOfPieces_FillTheFile) {
  write_and_expect<double>({"scores", 3}, 1237, size);
}

TEST_F(RowWriterOnRanks, RanksThatWriteNothing_HangNobody) {
  write_and_expect<double>({"scores", 3}, 311, std::max(1, size - 1));
  options.overwrite = true;
  write_and_expect<double>({"scores", 3}, 313, 1);
}

TEST_F(RowWriterOnRanks, Float32_IsStoredFromDoublesAndFloats) {
  write_and_expect<double>({"folder/labels", 1, true}, 501, size);
  options.overwrite = true;
  write_and_expect<float>({"folder/labels", 1, true}, 503, size);
}

TEST_F(RowWriterOnRanks, FloatsIntoFloat64_AreExact) {
  write_and_expect<float>({"x", 7}, 99, size);
}

TEST_F(RowWriterOnRanks, CallsShorterThanARow_LoseNothing) {
  options.piece_bytes = 24;
  write_and_expect<double>({"x", 7}, 57, size);
}

TEST_F(RowWriterOnRanks, CallsOfSeveralRows_LoseNothing) {
  options.piece_bytes = 3 * 7 * 8 + 5;
  write_and_expect<double>({"x", 7}, 157, size);
}

TEST_F(RowWriterOnRanks, NoRows_GiveAnEmptyDataSet) {
  write_and_expect<double>({"x", 4}, 0, size);
}

TEST_F(RowWriterOnRanks, MissingRows_FailEverywhereAlike) {
  std::string message;
  {
    RowWriter writer(path, {"x", 2}, 10, options);
    if (rank == 0) writer.write({0, 9}, values_of<double>({0, 9}, 2));
    try {
      writer.finish();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      message = error.what();
    }
  }
  EXPECT_EQ(message, "cannot write " + path + ": 9 of 10 rows were given");
  expect_nothing_stays();
}

TEST_F(RowWriterOnRanks, AnOutputThatExists_IsRefusedEverywhereAndKept) {
  if (rank == 0) std::ofstream(path) << "mine";
  MPI_Barrier(MPI_COMM_WORLD);
  try {
    RowWriter writer(path, {"x", 2}, 10, options);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("exists"), std::string::npos) << error.what();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(files_in(folder), std::vector<std::string>{"out.h5"});
  EXPECT_EQ(std::filesystem::file_size(path), 4u);
}

TEST_F(RowWriterOnRanks, AFolderThatIsNotThere_IsRefusedEverywhere) {
  EXPECT_THROW(RowWriter(folder + "/none/out.h5", {"x", 2}, 10, options), Error);
}

TEST_F(RowWriterOnRanks, ARankThatGivesUp_HangsNobodyAndNoFileStays) {
  for (int quitter = 0; quitter < size; ++quitter) {
    int waits = 0;
    options.while_waiting = [&waits] {
      if (++waits > 500) throw GivenUp("others failed");
    };
    auto writer = std::make_unique<RowWriter>(path, RowOutput{"x", 2}, 10, options);
    waits = 0;
    if (rank == quitter) {
      writer->write({0, 5}, values_of<double>({0, 5}, 2));
    } else {
      EXPECT_THROW(writer->finish(), GivenUp);
    }
    writer.reset();
    expect_nothing_stays();
  }
}

TEST_F(RowWriterOnRanks, AFullDisk_FailsAndNoFileStays) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 64 << 10;
  const std::int64_t share = 20000;
  {
    RowWriter writer(path, {"x", 2}, share * size, options);
    ::setrlimit(RLIMIT_FSIZE, &small);
    const RowRange mine{share * rank, share};
    EXPECT_THROW(writer.write(mine, values_of<double>(mine, 2)), Error);
    try {
      writer.finish();
      ADD_FAILURE() << "finished";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      EXPECT_NE(std::string(error.what()).find("cannot write rows 0:20000 of " + path), std::string::npos)
          << error.what();
    }
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  expect_nothing_stays();
}

}  // namespace
}  // namespace rowmill::testing
