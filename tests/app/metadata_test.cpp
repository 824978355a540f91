// Metadata is read once: what ranks and their helpers open, read and start is noted by a library that is preloaded.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;
using test::Outcome;

struct Counts {
  int opens = 0, starts = 0;
  std::map<std::int64_t, int> data;  ///< offset of a run of data → reads that lie in it
  std::map<std::pair<std::int64_t, std::int64_t>, int> else_where;  ///< offset and bytes → times read
  int metadata_reads() const {
    int sum = 0;
    for (const auto& [place, times] : else_where) sum += times;
    return sum;
  }
};

/// A program and a helper of their own: the helper is a script that has the library loaded in the real one too, which
/// gets no environment from the program.
class Metadata : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::sanitized) GTEST_SKIP() << "a sanitizer's library must be the first that is loaded";
    std::filesystem::copy_file(test::program(), program_);
    std::ofstream(folder_ / "rowmill-h5-helper")
        << "#!/bin/sh\nexport ROWMILL_NOTED='" << input_ << "' ROWMILL_NOTES='" << notes_ << "'\nLD_PRELOAD='"
        << ROWMILL_NOTE_READS << "' exec '" << ROWMILL_BIN_DIR << "/rowmill-h5-helper' \"$@\"\n";
    ::chmod((folder_ / "rowmill-h5-helper").c_str(), 0755);
  }

  /// Runs stats on so many ranks; runs of data lie at `runs` (offset → bytes).
  Counts counts(int ranks, const std::map<std::int64_t, std::int64_t>& runs) {
    std::filesystem::remove(notes_);
    test::Command command;
    command.words = {"mpirun",       "-q",  "--oversubscribe", "-n", std::to_string(ranks), program_, "stats", input_,
                     "--block-rows", "100", "--overwrite",     "-o", folder_ / "out.h5"};
    command.environment = test::mpi_environment();
    command.environment.insert(
        command.environment.end(),
        {{"LD_PRELOAD", ROWMILL_NOTE_READS}, {"ROWMILL_NOTED", input_}, {"ROWMILL_NOTES", notes_}});
    const Outcome outcome = test::run_program(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    Counts result;
    std::ifstream notes(notes_);
    std::string what;
    for (std::int64_t offset = 0, bytes = 0; notes >> what >> offset >> bytes;) {
      if (what == "open") ++result.opens;
      if (what == "start") ++result.starts;
      if (what != "read") continue;
      const auto after = runs.upper_bound(offset);
      if (after != runs.begin() && offset + bytes <= std::prev(after)->first + std::prev(after)->second) {
        ++result.data[std::prev(after)->first];
      } else {
        ++result.else_where[{offset, bytes}];
      }
    }
    return result;
  }

  /// Where the values of /X lie.
  std::map<std::int64_t, std::int64_t> runs_of_data() const {
    std::map<std::int64_t, std::int64_t> runs;
    const hid_t file = H5Fopen(input_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/X", H5P_DEFAULT), space = H5Dget_space(dataset);
    hsize_t chunks = 0, offset[2] = {}, bytes = 0;
    haddr_t address = H5Dget_offset(dataset);
    if (address != HADDR_UNDEF) {
      runs[static_cast<std::int64_t>(address)] = static_cast<std::int64_t>(H5Dget_storage_size(dataset));
    } else {
      H5Dget_num_chunks(dataset, space, &chunks);
      for (hsize_t i = 0; i < chunks; ++i) {
        unsigned mask = 0;
        H5Dget_chunk_info(dataset, space, i, offset, &mask, &address, &bytes);
        runs[static_cast<std::int64_t>(address)] = static_cast<std::int64_t>(bytes);
      }
    }
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(file);
    return runs;
  }

  void expect_read_once() {
    const auto runs = runs_of_data();
    ASSERT_FALSE(runs.empty());
    const Counts alone = counts(1, runs), many = counts(8, runs);
    EXPECT_GT(alone.metadata_reads(), 0) << "nothing was noted";
    EXPECT_EQ(many.else_where, alone.else_where) << "reads of what is not data";
    EXPECT_EQ(alone.starts, 1);
    EXPECT_EQ(many.starts, 1) << "only one rank needs HDF5";
    EXPECT_GT(alone.opens, 0);
    // rank 0 and its helper open it as one rank alone does; each other rank opens it to read from it
    EXPECT_EQ(many.opens, alone.opens + 7);
    EXPECT_EQ(many.data.size(), runs.size());
  }

  Folder folder_;
  const std::string input_ = folder_ / "x.h5", notes_ = folder_ / "notes", program_ = folder_ / "rowmill";
};

Matrix<float> matrix() {
  Matrix<float> x(4000, 16);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<float>(i * 2654435761U % 1000);
  return x;
}

TEST_F(Metadata, OfAContiguousFile_IsReadByOneRankOfEight) {
  test::write_h5(input_, matrix());
  expect_read_once();
}

TEST_F(Metadata, OfStorageChunks_IsReadByOneRankOfEight) {
  test::write_h5(input_, matrix(), {.chunk_rows = 100, .chunk_columns = 16});
  expect_read_once();
}

TEST_F(Metadata, OfCompressedStorageChunks_IsReadByOneRankOfEight) {
  test::write_h5(input_, matrix(), {.chunk_rows = 100, .chunk_columns = 16, .gzip = 1});
  expect_read_once();
  for (const auto& [offset, reads] : counts(8, runs_of_data()).data) {
    EXPECT_EQ(reads, 1) << "the storage chunk at byte " << offset;
  }
}

}  // namespace
}  // namespace rowmill
