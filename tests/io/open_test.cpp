// From the words of the command line to a source: names, formats, the choice of a data set, listing.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/io/io_support.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill::test {
namespace {

class Open : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  void write(const std::string& name, const std::vector<std::string>& datasets, hid_t type = H5T_NATIVE_FLOAT) {
    const hid_t out = H5Fcreate((folder_ / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const hsize_t shape[2] = {5, 2};
    const hid_t space = H5Screate_simple(2, shape, nullptr);
    for (const auto& dataset : datasets) {
      H5Dclose(H5Dcreate2(out, dataset.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT));
    }
    H5Sclose(space);
    H5Pclose(links);
    H5Fclose(out);
  }
  std::string chosen(const std::string& name) { return open_source(request_for(folder_ / name))->info().dataset; }
  Error plan_error(const std::string& input, const std::string& format = "auto") {
    InputRequest request = request_for(input);
    request.format = format;
    return error_of([&] { plan_input(request); });
  }
  void expect_error(const std::string& input, ExitCode code, const std::string& words,
                    const std::string& format = "auto") {
    const Error e = plan_error(input, format);
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }

  ScratchFolder folder_;
};

using Pair = std::pair<std::string, std::string>;

TEST_F(Open, SplitInput_CutsWhereTheFileEnds) {
  const std::string none = folder_ / "none.h5";  // in a folder of our own: what exists decides
  EXPECT_EQ(split_input(none + ":/X"), Pair(none, "/X"));
  EXPECT_EQ(split_input(none), Pair(none, ""));
  EXPECT_EQ(split_input(none + ":/g/x:/y"), Pair(none + ":/g/x", "/y"));
  EXPECT_EQ(split_input(folder_ / "a:b.h5"), Pair(folder_ / "a:b.h5", ""));
  const std::string plain = file("a.h5", ""), odd = file("b.h5:", "");
  EXPECT_EQ(split_input(plain + ":/g/x:/y"), Pair(plain, "/g/x:/y"));
  EXPECT_EQ(split_input(odd + ":/y"), Pair(odd, "/y"));
  std::filesystem::create_directory(folder_ / "c:");
  const std::string within = file("c:/d.h5", "");
  EXPECT_EQ(split_input(within), Pair(within, ""));
  EXPECT_EQ(split_input(within + ":/z"), Pair(within, "/z"));
}

TEST_F(Open, FilesThatAreNeither_AreNamedForWhatTheyAre) {
  expect_error(folder_ / "gone.h5", ExitCode::input, "No such file");
  expect_error(folder_.path().string(), ExitCode::input, "directory");
  expect_error(file("a", ""), ExitCode::input, "empty");
  expect_error(file("a", "x,y\n1,2\n"), ExitCode::input, "text file");
  expect_error(file("a", "CDF\x01 and more"), ExitCode::input, "classic netCDF");
  expect_error(file("a", "MATLAB 5.0 MAT-file, more"), ExitCode::input, "-v7.3");
  expect_error(file("a", "\x1f\x8b\x08 more"), ExitCode::input, "gzip");
  expect_error(file("a", "PK\x03\x04 more"), ExitCode::input, "zip");
  expect_error(file("a", std::string("\0\x01\x02", 3)), ExitCode::input, "not HDF5 or .npy");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_error(folder_ / "pipe", ExitCode::input, "not a regular file");
}

TEST_F(Open, Format_IsCheckedAgainstTheFile) {
  write("a.h5", {"X"});
  expect_error(folder_ / "a.h5", ExitCode::input, "is hdf5, not npy", "npy");
  expect_error(folder_ / "a.h5", ExitCode::usage, "not known", "parquet");
  expect_error(file("a.npy", "\x93NUMPY\x01"), ExitCode::input, "is npy, not hdf5", "hdf5");
  expect_error(folder_ / "a.npy", ExitCode::input, "is npy, not anndata", "anndata");
}

TEST_F(Open, DataSetNotNamed_IsTheOnlyNumericOneOrAKnownPlace) {
  write("one.h5", {"g/h/only"});
  EXPECT_EQ(chosen("one.h5"), "/g/h/only");
  write("x.h5", {"A", "X", "obs/z"});
  EXPECT_EQ(chosen("x.h5"), "/X");
  write("loom.h5", {"matrix", "other"});
  EXPECT_EQ(chosen("loom.h5"), "/matrix");
  write("planted.h5", {"data", "planted/mean", "planted/std"});
  EXPECT_EQ(chosen("planted.h5"), "/data");
  EXPECT_TRUE(open_source(request_for(folder_ / "planted.h5:/data"))->info().has_planted);
  EXPECT_FALSE(open_source(request_for(folder_ / "planted.h5:/planted/mean"))->info().has_planted);
  EXPECT_FALSE(open_source(request_for(folder_ / "x.h5:/X"))->info().has_planted);
}

TEST_F(Open, DataSetThatIsNotClear_IsAUsageErrorListingTheChoices) {
  write("two.h5", {"g/a", "b"});
  const Error e = plan_error(folder_ / "two.h5");
  EXPECT_EQ(e.code(), ExitCode::usage);
  for (const char* words : {"/g/a (5 x 2 float32)", "/b (5 x 2 float32)"}) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
  write("none.h5", {"t"}, H5T_C_S1);
  expect_error(folder_ / "none.h5", ExitCode::input, "no numeric data set");
}

TEST_F(Open, DataSetThatNeedsAnotherFilter_IsNamedWithItAndNotPassedOver) {
  const auto add_filtered = [&](const std::string& name, const char* dataset) {
    const hid_t out = H5Fopen((folder_ / name).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hsize_t shape[2] = {5, 2};
    const hid_t space = H5Screate_simple(2, shape, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, shape);
    H5Pset_filter(list, 32026, H5Z_FLAG_OPTIONAL, 0, nullptr);
    H5Dclose(H5Dcreate2(out, dataset, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(out);
  };
  write("only.h5", {"a text"}, H5T_C_S1);
  add_filtered("only.h5", "/z");
  expect_error(folder_ / "only.h5", ExitCode::input, "only.h5:/z: it needs filter 32026 (blosc2)");
  expect_error(folder_ / "only.h5:/z", ExitCode::input, "only.h5:/z: it needs filter 32026 (blosc2)");
  write("place.h5", {"other"});
  add_filtered("place.h5", "/X");
  expect_error(folder_ / "place.h5", ExitCode::input, "place.h5:/X: it needs filter 32026 (blosc2)");
  write("two.h5", {"index"});
  add_filtered("two.h5", "/values");
  expect_error(folder_ / "two.h5", ExitCode::usage, "/values (5 x 2 float32)");
  EXPECT_EQ(open_source(request_for(folder_ / "two.h5:/index"))->info().rows, 5);
}

TEST_F(Open, DataSetThatIsNotThereOrAGroup_IsAnInputErrorNamingIt) {
  write("a.h5", {"g/x"});
  expect_error(folder_ / "a.h5:/nothing", ExitCode::input,
               "a.h5:/nothing: there is nothing of that name; it holds /g/x");
  expect_error(folder_ / "a.h5:/g/x/y", ExitCode::input, "there is nothing of that name");
  expect_error(folder_ / "a.h5:/g", ExitCode::input,
               "it is a group, not a data set: name a data set in it; it holds /g/x");
  write("many.h5", {"a", "b", "c", "d", "e", "f", "g/h"});
  expect_error(folder_ / "many.h5:/nothing", ExitCode::input, "it holds /a, /b, /c, /d, /e and 2 more");
  expect_error(folder_ / "many.h5:/g", ExitCode::input, "it holds /g/h");
  const hid_t out = H5Fopen((folder_ / "many.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Gclose(H5Gcreate2(out, "/empty", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Lcreate_soft("/nowhere", out, "/soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(out);
  expect_error(folder_ / "many.h5:/empty", ExitCode::input, "it holds no data set");
  expect_error(folder_ / "many.h5:/soft", ExitCode::input, "it cannot be opened");
}

TEST_F(Open, InputThatIsNearlyTheNameOfADataSet_IsAnsweredWithWhatWasMeant) {
  write("expr.h5", {"X", "g/x"});
  const std::string path = folder_ / "expr.h5";
  expect_error(path + ":X", ExitCode::input, "did you mean " + path + ":/X?");
  expect_error(path + "/X", ExitCode::input, "did you mean " + path + ":/X?");
  expect_error(path + "/g/x", ExitCode::input, "did you mean " + path + ":/g/x?");
  expect_error(path + ":", ExitCode::input, "did you mean " + path + " alone, or " + path + ":/DATASET?");
  const Error e = error_of([&] { list_input(request_for(path + ":X")); });
  EXPECT_NE(std::string(e.what()).find("did you mean"), std::string::npos) << e.what();
}

TEST_F(Open, FileThatWasCutShort_IsToldInBytes) {
  write("a.h5", {"X"});
  std::filesystem::resize_file(folder_ / "a.h5", std::filesystem::file_size(folder_ / "a.h5") - 100);
  const auto left = std::filesystem::file_size(folder_ / "a.h5");
  expect_error(folder_ / "a.h5", ExitCode::input, "a.h5: is truncated: " + std::to_string(left) + " of ");
}

TEST_F(Open, Listing_HoldsEachDataSetOnceAndStopsInLoops) {
  write("a.h5", {"g/x", "y"});
  const hid_t out = H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_hard(out, "/g", out, "/g/again", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(out, "/g/x", out, "/same", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/soft", out, "/soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/", out, "/external", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(out);
  const FileListing listing = list_input(request_for(folder_ / "a.h5"));
  EXPECT_EQ(listing.format, "hdf5");
  EXPECT_EQ(listing.datasets.size(), 2U);
  for (const DatasetLine& line : listing.datasets) {
    EXPECT_TRUE(line.numeric);
    EXPECT_EQ(line.shape, "5 x 2");
    EXPECT_EQ(line.type, "float32");
    EXPECT_EQ(line.storage, "contiguous");
  }
  EXPECT_FALSE(listing.notes.empty());
}

TEST_F(Open, OddNames_AreFound) {
  const std::vector<std::string> names = {"with space/ trailing ", "\xce\xb1 \xe6\x95\xb0", "quote\"'`$x",       "a:/b",
                                          "dot./..weird",          std::string(300, 'n'),   "\xff\xfe not utf-8"};
  write("a.h5", names);
  for (const std::string& name : names) {
    EXPECT_EQ(open_source(request_for((folder_ / "a.h5:/") + name))->info().dataset, "/" + name);
  }
  EXPECT_EQ(list_input(request_for(folder_ / "a.h5")).datasets.size(), names.size());
}

TEST_F(Open, PathOfTheFile_MayBeRelativeAndOdd) {
  std::filesystem::create_directory(folder_ / "sub dir");
  write("sub dir/a b.h5", {"X"});
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  EXPECT_EQ(open_source(request_for("sub dir/a b.h5:/X"))->info().rows, 5);
  std::filesystem::current_path(folder_.path() / "sub dir");
  EXPECT_EQ(open_source(request_for("a b.h5"))->info().rows, 5);
  std::filesystem::current_path(before);
}

TEST_F(Open, Info_TellsTypeStorageAndWay) {
  std::mt19937_64 random(fresh_seed());
  Model model = random_model(random, {20, 3, 2}, {DType::i16, true});
  write_model(folder_ / "a.h5", model, {.chunk = {4, 3, 1}, .shuffle = true, .gzip = 4});
  const auto source = open_source(request_for(folder_ / "a.h5:/X"));
  const SourceInfo& info = source->info();
  EXPECT_EQ(info.format, "hdf5");
  EXPECT_EQ(info.columns, 6);
  EXPECT_EQ(info.stored_type, "int16");
  EXPECT_EQ(info.shape, (std::vector<std::int64_t>{20, 3, 2}));
  EXPECT_EQ(info.storage, "chunked 4 x 3 x 1, shuffle + gzip 4");
  EXPECT_EQ(info.storage_chunk_rows, 4);
  EXPECT_EQ(info.file_bytes, static_cast<std::int64_t>(std::filesystem::file_size(folder_ / "a.h5")));
  EXPECT_GT(info.modified_ns, 0);
}

}  // namespace
}  // namespace rowmill::test
