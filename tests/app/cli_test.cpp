// The program as its users start it: output, result files, exit codes.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace rowmill {
namespace {

using test::Folder;
using test::Matrix;
using test::Outcome;
using test::rowmill;

Matrix<float> counting(std::int64_t rows, std::int64_t columns) {
  Matrix<float> x(rows, columns);
  for (std::size_t k = 0; k < x.values.size(); ++k) x.values[k] = static_cast<float>(k % 1000);
  return x;
}

void expect_one_line(const Outcome& outcome, int exit_code, const std::string& mentions) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find(mentions), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
}

TEST(Program, Stats_OfAnHdf5File_WritesAResultThatTellsWhereItCameFrom) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(1000, 3));
  const Outcome outcome = rowmill({"stats", folder / "x.h5:/X", "-o", folder / "out.h5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
  EXPECT_NE(outcome.out.find("result in"), std::string::npos) << outcome.out;
  for (const char* name : {"count", "missing", "sum", "mean", "variance", "std", "min", "max"}) {
    EXPECT_EQ(test::read_result(folder / "out.h5", name).size(), 3U) << name;
  }
  EXPECT_EQ(test::read_result(folder / "out.h5", "max")[0], 999);
  for (const char* name :
       {"rowmill_version", "command", "inputs", "missing", "precision", "backend", "devices", "started"}) {
    EXPECT_FALSE(test::read_attribute(folder / "out.h5", name).empty()) << name;
  }
  const auto number = [&](const char* name) { return test::read_number_attribute(folder / "out.h5", name); };
  EXPECT_EQ(number("rows"), 1000);
  EXPECT_EQ(number("columns"), 3);
  EXPECT_EQ(number("world_size"), 1);
  EXPECT_EQ(number("bytes_read"), 12000) << "each byte once";
  EXPECT_EQ(number("precision_measured_error"), 0);
  EXPECT_GT(number("precision_bound"), 0);
  EXPECT_LT(number("precision_bound"), 1e-11);
  EXPECT_GT(number("seconds"), 0);
}

TEST(Program, TheCommandOfAResult_TellsWhatThePlanChose) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(1000, 3));
  const auto command_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"cov", folder / "x.h5", "-o", folder / "out.h5", "--overwrite"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = rowmill(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(test::read_attribute(folder / "out.h5", "command"));
  };
  const auto chosen = command_of({});
  for (const char* option : {"threads", "io-threads", "prefetch", "block-rows", "memory"}) {
    EXPECT_GT(chosen.at(option).get<std::int64_t>(), 0) << option;
  }
  EXPECT_EQ(chosen.at("block-rows"), test::read_number_attribute(folder / "out.h5", "block_rows"));
  EXPECT_GE(chosen.at("memory").get<std::int64_t>(), 1 << 20) << "bytes";
  const auto given = command_of({"--block-rows", "100", "--threads", "2", "--io-threads", "1", "--prefetch", "3",
                                 "--memory", "256MiB", "--ddof", "0"});
  EXPECT_EQ(given.at("block-rows"), 100);
  EXPECT_EQ(given.at("threads"), 2);
  EXPECT_EQ(given.at("io-threads"), 1);
  EXPECT_EQ(given.at("prefetch"), 3);
  EXPECT_EQ(given.at("memory"), "256MiB");
  EXPECT_EQ(given.at("ddof"), 0);
  EXPECT_EQ(given.at("missing"), "error");
  EXPECT_EQ(given.at("rows"), "0:1000");
  EXPECT_EQ(given.at("columns"), "0:3");
  const auto one_block = command_of({"--block-rows", "1000", "--threads", "8"});
  EXPECT_EQ(one_block.at("threads"), 1) << "one block needs no more";
}

TEST(Program, Cov_InFp32_TellsItsBoundAndAnErrorBelowIt) {
  Folder folder;
  Matrix<float> x = counting(5000, 16);
  for (std::size_t k = 0; k < x.values.size(); ++k) x.values[k] = std::sin(static_cast<float>(k));
  test::write_h5(folder / "x.h5", x);
  ASSERT_EQ(rowmill({"cov", folder / "x.h5:/X", "-o", folder / "out.h5"}).exit_code, 0);
  EXPECT_EQ(test::read_attribute(folder / "out.h5", "precision"), "fp32");
  const double bound = test::read_number_attribute(folder / "out.h5", "precision_bound");
  const double measured = test::read_number_attribute(folder / "out.h5", "precision_measured_error");
  EXPECT_GT(measured, 0);
  EXPECT_LT(measured, bound);
  EXPECT_LT(bound, 3e-4);
}

TEST(Program, Json_IsOneObjectOnStdout) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  const Outcome outcome = rowmill({"stats", folder / "x.h5", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.front(), '{');
  EXPECT_NE(outcome.out.find("\"mean\""), std::string::npos);
  EXPECT_NE(outcome.out.find("\"bytes_read\": 800"), std::string::npos) << outcome.out;
}

/// No GPU is to be seen by the programs that are started meanwhile, whether there is one or not.
class WithoutGpus {
 public:
  WithoutGpus() { setenv("CUDA_VISIBLE_DEVICES", "", 1); }
  WithoutGpus(const WithoutGpus&) = delete;
  WithoutGpus& operator=(const WithoutGpus&) = delete;
  ~WithoutGpus() { unsetenv("CUDA_VISIBLE_DEVICES"); }
};

TEST(Program, BackendCuda_WithoutAGpu_ExitsWithFourAndOneLine) {
  const WithoutGpus hidden;
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  const std::string input = folder / "x.h5";
  for (const int ranks : {0, 2}) {
    expect_one_line(rowmill({"gram", input, "--backend", "cuda"}, ranks), 4, "--backend cuda cannot be had");
    expect_one_line(rowmill({"gram", input, "--comm", "nccl"}, ranks), 4, "--comm nccl");
  }
  expect_one_line(rowmill({"info", input, "--backend", "cuda"}), 4, "--backend cuda cannot be had");
}

/// Something that calls itself a driver but has nothing of one: the program opens the real module, and what the CUDA
/// runtime says there comes back across the module's bounds.
TEST(Program, BackendCuda_OnADriverThatIsNone_TellsWhatTheModuleSays) {
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  const std::string kept = before != nullptr ? before : "";
  setenv("LD_LIBRARY_PATH", (ROWMILL_FAKE_DRIVER_DIR ":" + kept).c_str(), 1);
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  const bool built = std::filesystem::exists(std::string(ROWMILL_BIN_DIR) + "/librowmill_cuda.so");
  expect_one_line(rowmill({"gram", folder / "x.h5", "--backend", "cuda"}), 4,
                  built ? "driver is older than the CUDA of this build" : "was built without CUDA");
  setenv("LD_LIBRARY_PATH", kept.c_str(), 1);
}

TEST(Program, APrecisionOfGpus_OnTheHost_ExitsWithTwo) {
  const WithoutGpus hidden;
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  for (const char* precision : {"tf32", "bf16", "fp16", "bf16x3", "int8"}) {
    expect_one_line(rowmill({"gram", folder / "x.h5", "--precision", precision}), 2,
                    std::string("--precision ") + precision + " needs a GPU");
  }
}

TEST(Program, WithoutAGpu_MillsOnTheHostAndTellsWhyWhereAsked) {
  const WithoutGpus hidden;
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  const std::string input = folder / "x.h5";
  const Outcome told = rowmill({"gram", input, "--log-level", "info", "-o", folder / "out.h5"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_NE(told.err.find("milled on the host: "), std::string::npos) << told.err;
  EXPECT_NE(told.err.find("staging memory: "), std::string::npos) << told.err;
  EXPECT_EQ(test::read_attribute(folder / "out.h5", "backend"), "host");
  EXPECT_EQ(test::read_attribute(folder / "out.h5", "comm"), "self");
  EXPECT_GT(test::read_number_attribute(folder / "out.h5", "staging_memory"), 0);
  EXPECT_GT(test::read_number_attribute(folder / "out.h5", "device_memory"), 0);

  const Outcome info = rowmill({"info", input});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  EXPECT_NE(info.out.find("on the host, "), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("not on a GPU: "), std::string::npos) << info.out;
  EXPECT_EQ(rowmill({"info", input, "--backend", "host"}).out.find("not on a GPU"), std::string::npos);
  EXPECT_NE(rowmill({"info", input, "--json"}).out.find("\"why_not_gpu\""), std::string::npos);
}

TEST(Program, OnTwoRanks_NamesMpiAsItsCommunicator) {
  const WithoutGpus hidden;
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  const Outcome outcome = rowmill({"gram", folder / "x.h5", "--json"}, 2);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"comm\": \"mpi\""), std::string::npos) << outcome.out;
}

TEST(Program, AnOutputThatExists_IsRefusedUnlessOverwrite) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  std::ofstream(folder / "out.h5") << "mine";
  const std::vector<std::string> words = {"cov", folder / "x.h5:/X", "-o", folder / "out.h5"};
  expect_one_line(rowmill(words), 2, "--overwrite");
  EXPECT_EQ(std::filesystem::file_size(folder / "out.h5"), 4U);
  std::vector<std::string> forced = words;
  forced.push_back("--overwrite");
  EXPECT_EQ(rowmill(forced).exit_code, 0);
  EXPECT_EQ(test::read_result(folder / "out.h5", "covariance").size(), 4U);
}

TEST(Program, SeveralDataSets_AreListedWhereNoneIsNamed) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2), {}, "/first");
  const hid_t file = H5Fopen((folder / "x.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hsize_t size[2] = {4, 4};
  const hid_t space = H5Screate_simple(2, size, nullptr);
  H5Dclose(H5Dcreate2(file, "/second", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(file);
  const Outcome outcome = rowmill({"stats", folder / "x.h5"});
  expect_one_line(outcome, 2, "/second");
  EXPECT_NE(outcome.err.find("/first"), std::string::npos);
}

TEST(Program, InputsThatCannotBeUsed_ExitWithThreeAndOneLine) {
  Folder folder;
  const hid_t file = H5Fcreate((folder / "x.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t size[2] = {4, 2};
  const hid_t space = H5Screate_simple(2, size, nullptr), scalar = H5Screate(H5S_SCALAR);
  const hid_t text = H5Tcopy(H5T_C_S1), pair = H5Tcreate(H5T_COMPOUND, 16);
  H5Tset_size(text, 8);
  H5Tinsert(pair, "a", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(pair, "b", 8, H5T_NATIVE_DOUBLE);
  const auto make = [&](const char* name, hid_t type, hid_t extent) {
    H5Dclose(H5Dcreate2(file, name, type, extent, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  };
  make("/text", text, space);
  make("/compound", pair, space);
  make("/reference", H5T_STD_REF_OBJ, space);
  make("/scalar", H5T_NATIVE_DOUBLE, scalar);
  H5Tclose(text);
  H5Tclose(pair);
  H5Sclose(space);
  H5Sclose(scalar);
  H5Fclose(file);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"text", "string"}, {"compound", "compound"}, {"reference", "reference"}, {"scalar", "scalar"}};
  for (const auto& [name, type] : cases) {
    const Outcome outcome = rowmill({"stats", folder / "x.h5:/" + name, "-o", folder / "out.h5"});
    expect_one_line(outcome, 3, "/" + name);
    EXPECT_NE(outcome.err.find(type), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "out.h5"));
  }
  std::ofstream(folder / "words.h5") << "these are words";
  expect_one_line(rowmill({"stats", folder / "words.h5:/X"}), 3, "words.h5");
  expect_one_line(rowmill({"stats", folder / "nosuch.h5:/X"}), 3, "nosuch.h5");
  expect_one_line(rowmill({"stats", folder / "x.h5:/nosuch"}), 3, "/nosuch");
}

TEST(Program, TheErrorThatEndsARun_IsSaidThoughTheLogIsOff) {
  Folder folder;
  Matrix<std::int64_t> x(10, 1);
  x.at(3, 0) = (1LL << 53) + 1;
  test::write_h5(folder / "x.h5", x);
  const std::string off = "--log-level=off";
  expect_one_line(rowmill({"stats", folder / "x.h5:/nosuch", off}), 3, "/nosuch");
  expect_one_line(rowmill({"stats", folder / "x.h5:/nosuch", off}, 2), 3, "/nosuch");
  expect_one_line(rowmill({"info", folder / "x.h5:/nosuch", off}), 3, "/nosuch");
  expect_one_line(rowmill({"generate", folder / "no/such/x.h5", "--shape", "4x4", off}), 2, "no/such");
  const Outcome warned = rowmill({"stats", folder / "x.h5", off});
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_TRUE(warned.err.empty()) << "warnings are off: " << warned.err;
}

TEST(Program, RowsAndColumnsOutsideTheData_AreWrongUsage) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2));
  expect_one_line(rowmill({"stats", folder / "x.h5:/X", "--rows", "5:11"}), 2, "--rows");
  expect_one_line(rowmill({"stats", folder / "x.h5:/X", "--columns", "2"}), 2, "column 2");
  expect_one_line(rowmill({"stats", folder / "x.h5:/X", "--row-axis", "2"}), 2, "axis 2");
  expect_one_line(rowmill({"stats", folder / "x.h5:/X", "-o", folder / "no/such/out.h5"}), 2, "no/such");
}

TEST(Program, ADataSetOfAnNpyFile_IsWrongUsageForEveryCommand) {
  Folder folder;
  test::write_npy(folder / "x.npy", counting(10, 2));
  for (const char* command : {"info", "stats", "gram", "cov"}) {
    expect_one_line(rowmill({command, folder / "x.npy:/X"}), 2, "leave out :/X");
  }
  expect_one_line(rowmill({"generate", folder / "y.npy:/X", "--shape", "4x4"}), 2, "leave out :/X");
  EXPECT_FALSE(std::filesystem::exists(folder / "y.npy"));
}

TEST(Program, ColumnsUpToTheLast_AreMilled) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 5));
  const auto maxima = [&](const std::string& columns) {
    const Outcome outcome =
        rowmill({"stats", folder / "x.h5", "--columns", columns, "-o", folder / "out.h5", "--overwrite"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return test::read_result(folder / "out.h5", "max");
  };
  EXPECT_EQ(maxima("3:"), (std::vector<double>{48, 49}));
  EXPECT_EQ(maxima("4:,:2"), (std::vector<double>{49, 45, 46}));
  EXPECT_EQ(maxima(":"), (std::vector<double>{45, 46, 47, 48, 49}));
  for (const std::string columns : {"5:", "9223372036854775807", "9223372036854775807:", "4:9223372036854775807"}) {
    expect_one_line(rowmill({"stats", folder / "x.h5", "--columns", columns}), 2, "its columns are 0 to 4");
  }
}

TEST(Program, MessagesAboutADataSetThatWasChosenByDefault_NameIt) {
  Folder folder;
  Matrix<float> x = counting(10, 2);
  x.at(3, 1) = NAN;
  const std::string input = folder / "x.h5", name = input + ":/X";
  test::write_h5(input, x);
  expect_one_line(rowmill({"cov", input}), 3, name + ": the value at row 3");
  expect_one_line(rowmill({"stats", input, "--rows", "5:11"}), 2, "the 10 rows of " + name);
  expect_one_line(rowmill({"stats", input, "--rows", "0:1"}), 3, name + ": 1 row with --ddof 1");
  expect_one_line(rowmill({"stats", input, "--columns", "2"}), 2, name + ": has no column 2");
  test::write_h5(input, counting(0, 2));
  expect_one_line(rowmill({"stats", input}), 3, name + ": has no rows");
  Matrix<std::int64_t> large(10, 1);
  large.at(3, 0) = (1LL << 53) + 1;
  test::write_h5(input, large);
  const Outcome outcome = rowmill({"stats", input});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find(name + ": integers beyond 2^53"), std::string::npos) << outcome.err;
}

TEST(Program, MemoryThatIsTooLittle_NamesTheNeed) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(100, 2));
  expect_one_line(rowmill({"cov", folder / "x.h5:/X", "--memory", "1MiB"}), 2, "--memory");
}

TEST(Program, AnOutputThatIsTheInput_IsRefusedAndTheInputStays) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2));
  const auto size = std::filesystem::file_size(folder / "x.h5");
  for (const std::string& input : {folder / "x.h5", folder / "x.h5:/X"}) {
    expect_one_line(rowmill({"stats", input, "-o", folder / "x.h5", "--overwrite"}), 2, "the input itself");
  }
  EXPECT_EQ(std::filesystem::file_size(folder / "x.h5"), size);
  EXPECT_EQ(rowmill({"stats", folder / "x.h5:/X"}).exit_code, 0);
}

TEST(Program, NamesThatAreNotUtf8_AreRead) {
  Folder folder;
  const std::string name = folder / "x\xff\xfe.h5";
  test::write_h5(name, counting(10, 2));
  for (const char* command : {"info", "stats", "gram"}) {
    for (const char* form : {"--log-level=warn", "--json"}) {
      const Outcome outcome = rowmill({command, name + ":/X", form});
      EXPECT_EQ(outcome.exit_code, 0) << command << form << outcome.err;
      EXPECT_TRUE(outcome.err.empty()) << outcome.err;
    }
  }
  const Outcome outcome = rowmill({"stats", name, "-o", folder / "o\xff.h5"}, 2);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(test::read_attribute(folder / "o\xff.h5", "inputs").find("\xef\xbf\xbd"), std::string::npos);
  expect_one_line(rowmill({"stats", folder / "no\xff.h5"}), 3, "No such file");
}

TEST(Program, Info_OfADamagedStorageChunk_SaysSoOnStdoutAlone) {
  Folder folder;
  Matrix<float> x(5000, 4);
  std::mt19937 random(1);
  for (float& v : x.values) v = static_cast<float>(random() % 1000);
  test::write_h5(folder / "x.h5", x, {.chunk_rows = 5000, .chunk_columns = 4, .gzip = 4});
  std::fstream file(folder / "x.h5", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(folder / "x.h5") / 2));
  file << std::string(500, '\x55');
  file.close();
  const Outcome outcome = rowmill({"info", folder / "x.h5"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
  EXPECT_NE(outcome.out.find("cannot be run"), std::string::npos) << outcome.out;
}

TEST(Program, Info_TellsWhatWouldBeMilled) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(5000, 4), {.chunk_rows = 100, .chunk_columns = 4, .gzip = 4});
  const Outcome outcome = rowmill({"info", folder / "x.h5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* word : {"/X", "float32", "5000", "would mill", "stats", "memory"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << "\n" << outcome.out;
  }
  EXPECT_EQ(rowmill({"info", folder / "x.h5", "--json"}).out.front(), '{');
}

TEST(Program, Info_OfADataSetWithoutRows_SaysThatThereIsNothingToMill) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(0, 3));
  for (const std::string& input : {folder / "x.h5", folder / "x.h5:/X"}) {
    const Outcome outcome = rowmill({"info", input});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("x.h5:/X: has no rows to mill"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("would mill"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("0 x 3"), std::string::npos) << outcome.out;
    const Outcome json = rowmill({"info", input, "--json"});
    EXPECT_NE(json.out.find("\"would_mill\": null"), std::string::npos) << json.out;
  }
}

TEST(Program, Info_OfADataSetThatIsNotThere_ExitsWithThree) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2));
  expect_one_line(rowmill({"info", folder / "x.h5:/nosuch"}), 3, "/nosuch");
}

TEST(Program, Info_OfIntegersBeyondFloat64_WarnsNowhereButInItsAnswer) {
  Folder folder;
  Matrix<std::int64_t> x(10, 1);
  x.at(3, 0) = (1LL << 53) + 1;
  test::write_h5(folder / "x.h5", x);
  const Outcome outcome = rowmill({"info", folder / "x.h5"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
  const Outcome stats = rowmill({"stats", folder / "x.h5"});
  EXPECT_EQ(stats.error_lines().size(), 1U) << stats.err;
}

TEST(Program, Info_OfNamesThatSteerTerminals_ShowsThemAsEscapesAndCutsThem) {
  Folder folder;
  const hid_t file = H5Fcreate((folder / "x.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t size[2] = {4, 2};
  const hid_t space = H5Screate_simple(2, size, nullptr);
  const std::string bad = "a\x1b[2J\nwould mill fake";
  std::vector<std::string> names = {bad, std::string(60000, 'n')};
  for (int i = 0; i < 300; ++i) names.push_back("d" + std::to_string(i));
  for (const std::string& name : names) {
    H5Dclose(H5Dcreate2(file, name.c_str(), H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  H5Sclose(space);
  H5Fclose(file);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"info", folder / "x.h5"},
                                                {"info", folder / "x.h5:/" + bad},
                                                {"stats", folder / "x.h5:/" + bad}}) {
    const Outcome outcome = rowmill(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("\nwould mill fake"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("\\x1b[2J\\nwould mill fake"), std::string::npos) << outcome.out;
    EXPECT_LT(outcome.out.size(), 60000U) << "300 lines as long as the longest name would be 18 MB";
  }
  const Outcome listed = rowmill({"info", folder / "x.h5"});
  EXPECT_NE(listed.out.find("… and 102 more data sets"), std::string::npos) << listed.out;
  EXPECT_EQ(rowmill({"info", folder / "x.h5", "--json"}).out.find('\x1b'), std::string::npos);
}

TEST(Program, Info_SaysInPlainWordsHowItReads) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(5000, 4));
  const Outcome outcome = rowmill({"info", folder / "x.h5"});
  EXPECT_NE(outcome.out.find("5,000 rows × 4 columns, float32, contiguous, read directly\n"), std::string::npos)
      << outcome.out;
}

TEST(Program, Info_OfAFileOfLinksOnly_NamesTheReasonAndTheCure) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 1));
  const hid_t file = H5Fcreate((folder / "links.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("x.h5", "/X", file, "/link", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  const std::string cure = "1 external link is not followed unless named, as FILE:/link";
  const Outcome outcome = rowmill({"info", folder / "links.h5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(cure), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("none is milled unless it is named"), std::string::npos) << outcome.out;
  expect_one_line(rowmill({"stats", folder / "links.h5"}), 3, cure);
  const Outcome named = rowmill({"stats", folder / "links.h5:/link"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_NE(named.out.find("10 rows × 1 column,"), std::string::npos) << named.out;
}

TEST(Program, AResultWhoseNamePromisesAnotherFormat_IsWrittenWithAWarning) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2));
  const Outcome outcome = rowmill({"stats", folder / "x.h5", "-o", folder / "res.csv"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(outcome.error_lines().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("res.csv is an HDF5 file"), std::string::npos) << outcome.err;
  EXPECT_EQ(test::read_result(folder / "res.csv", "max").size(), 2U);
  EXPECT_TRUE(rowmill({"stats", folder / "x.h5", "-o", folder / "res.h5"}).err.empty());
}

TEST(Program, AMissingValue_IsToldWithWhatThatCommandCanDo) {
  Folder folder;
  Matrix<float> x = counting(10, 2);
  x.at(3, 1) = NAN;
  test::write_h5(folder / "x.h5", x);
  expect_one_line(rowmill({"stats", folder / "x.h5", "--missing", "error"}), 3,
                  "leave out --missing, and stats skips it");
  expect_one_line(rowmill({"gram", folder / "x.h5"}), 3, "use --missing propagate, or `stats`");
}

TEST(Program, UnderAShortLimitOfOpenFiles_NamesTheLimit) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2));
  test::Command command;
  command.words = {"sh", "-c", "ulimit -n 16; exec \"$0\" stats \"$1\"", test::program(), folder / "x.h5"};
  const Outcome outcome = test::run_program(command);
  if (outcome.err.find("HDF5 helper") == std::string::npos)
    GTEST_SKIP() << "MPI itself does not start with 16 open files here: " << outcome.err;
  expect_one_line(outcome, 1, "too few files may be open at once: raise the limit");
}

TEST(Program, GenerateWithJson_PrintsAnObject) {
  Folder folder;
  const Outcome outcome = rowmill({"generate", folder / "g.h5", "--shape", "10x2", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.front(), '{');
  EXPECT_NE(outcome.out.find("\"rows\": 10"), std::string::npos) << outcome.out;
}

TEST(Program, Generate_WithAFilterAndNoStorageChunks_SaysWhatToAdd) {
  Folder folder;
  expect_one_line(rowmill({"generate", folder / "g.h5", "--shape", "10x2", "--filter", "gzip"}), 2, "add --chunk");
  EXPECT_FALSE(std::filesystem::exists(folder / "g.h5"));
}

TEST(Program, Generate_PlantsAnswersThatCovFinds) {
  Folder folder;
  const Outcome made = rowmill({"generate", folder / "g.h5", "--shape", "20000x6", "--seed", "3"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Outcome outcome = rowmill({"cov", folder / "g.h5:/X", "-o", folder / "out.h5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("planted"), std::string::npos) << outcome.out;
  const auto found = test::read_result(folder / "out.h5", "covariance"),
             planted = test::read_result(folder / "g.h5", "planted/covariance");
  ASSERT_EQ(found.size(), 36U);
  ASSERT_EQ(planted.size(), 36U);
  for (std::size_t k = 0; k < 36; ++k) {
    const double size = std::sqrt(planted[k / 6 * 7] * planted[k % 6 * 7]);
    EXPECT_NEAR(found[k], planted[k], 6 * size / std::sqrt(20000.0)) << k;  // six standard errors
  }
}

TEST(Program, PeakMemory_StaysWithinTheBudgetForAFileFourTimesAsLarge) {
  if (test::sanitized) GTEST_SKIP() << "a sanitizer's own memory counts here";
  Folder folder;
  constexpr std::int64_t budget = 64 << 20;
  ASSERT_EQ(rowmill({"generate", folder / "g.h5", "--shape", "524288x128", "--rank", "1"}, 0, 120).exit_code, 0);
  ASSERT_GE(std::filesystem::file_size(folder / "g.h5"), static_cast<std::uintmax_t>(4 * budget));
  for (const char* job : {"stats", "gram", "cov"}) {
    const Outcome outcome =
        rowmill({job, folder / "g.h5:/X", "-o", folder / "out.h5", "--overwrite", "--memory", "64MiB"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_LE(outcome.peak_memory, budget) << job;
    EXPECT_GT(outcome.peak_memory, 1 << 20) << job;
  }
}

/// The number behind "name": in a JSON text.
std::int64_t json_number(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\"" + name + "\": ");
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + name.size() + 4);
}

TEST(Program, PeakMemory_OfRanksAndOfHelpers_StaysWithinTheBudget) {
  if (test::sanitized) GTEST_SKIP() << "a sanitizer's own memory counts here";
  Folder folder;
  constexpr std::int64_t budget = 160 << 20;
  ASSERT_EQ(rowmill({"generate", folder / "g.h5", "--shape", "400000x64", "--rank", "1", "--chunk", "8192x64",
                     "--filter", "gzip", "--gzip-level", "1"},
                    0, 120)
                .exit_code,
            0);
  // n-bit is undone by HDF5, in helpers
  test::Matrix<std::int32_t> x(400000, 64);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<std::int32_t>(i % 1000);
  test::write_h5(folder / "n.h5", x, {.chunk_rows = 8192, .chunk_columns = 64, .n_bit = true});
  for (const auto& [ranks, file] : {std::pair{0, "g.h5"}, {2, "g.h5"}, {0, "n.h5"}, {2, "n.h5"}}) {
    for (const char* job : {"stats", "cov"}) {
      const Outcome outcome = rowmill({job, folder / file, "--memory", "160MiB", "--json"}, ranks, 120);
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const std::int64_t of_helper = json_number(outcome.out, "peak_of_helper");
      EXPECT_EQ(of_helper > 0, std::string_view(file) == "n.h5");
      EXPECT_LE(of_helper, 64 << 20) << "HDF5, a storage chunk of 2 MiB and its kin";
      const std::int64_t peak = json_number(outcome.out, "peak"), share = budget / std::max(1, ranks);
      EXPECT_GT(peak, 1 << 20);
      EXPECT_LE(peak, json_number(outcome.out, "expected")) << job << " on " << ranks << " ranks";
      EXPECT_LE(json_number(outcome.out, "expected"), share);
      EXPECT_EQ(json_number(outcome.out, "budget_of_rank"), share);
    }
  }
}

TEST(Program, ADiskThatIsFull_LeavesNothingAtTheOutput) {
  Folder folder;
  const std::string mount = "mount -t tmpfs -o size=256k none " + folder.path();
  if (geteuid() != 0 || system((mount + " 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "a small tmpfs cannot be mounted here";
  Folder elsewhere;
  test::write_h5(elsewhere / "x.h5", counting(400, 300));  // the covariance takes 720 kB
  const Outcome outcome = rowmill({"cov", elsewhere / "x.h5:/X", "-o", folder / "out.h5"});
  const auto files = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  EXPECT_EQ(system(("umount " + folder.path()).c_str()), 0);
  expect_one_line(outcome, 1, "out.h5");
  EXPECT_EQ(files, 0);
}

TEST(Program, ADiskThatIsFull_LeavesNothingOfGeneratedStorageChunks) {
  for (const int ranks : {0, 2}) {
    Folder folder;
    const std::string mount = "mount -t tmpfs -o size=64k none " + folder.path();
    if (geteuid() != 0 || system((mount + " 2>/dev/null").c_str()) != 0)
      GTEST_SKIP() << "a small tmpfs cannot be mounted here";
    const Outcome outcome =
        rowmill({"generate", folder / "g.h5", "--shape", "100000x10", "--chunk", "100x10", "--filter", "gzip"}, ranks);
    const auto files = std::distance(std::filesystem::directory_iterator(folder.path()), {});
    EXPECT_EQ(system(("umount " + folder.path()).c_str()), 0);
    expect_one_line(outcome, 1, "g.h5");
    EXPECT_EQ(files, 0);
  }
}

TEST(Program, AResultBeyondTheLimitOnFileSizes_IsAnErrorWithoutASignal) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(400, 300));  // the covariance takes 720 kB
  test::Command command;
  command.words = {"sh",
                   "-c",
                   "ulimit -f 100; exec \"$0\" cov \"$1\" -o \"$2\"",
                   test::program(),
                   folder / "x.h5",
                   folder / "out.h5"};
  expect_one_line(test::run_program(command), 1, "out.h5");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Program, AnOutputWhoseNameIsTooLong_IsRefusedBeforeAnythingIsRead) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2));
  expect_one_line(rowmill({"stats", folder / "x.h5", "-o", folder / std::string(256, 'x')}), 2, "longer than");
}

/// The answers that `generate` plants are an extra: a file that lies about them is milled all the same.
TEST(Program, PlantedAnswersThatAreNone_AreLeftOut) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(50, 3));
  const hid_t file = H5Fopen((folder / "x.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hsize_t extent[] = {10'000'000'000'000}, chunk[] = {1000};
  const hid_t space = H5Screate_simple(1, extent, nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 1, chunk);
  const hid_t group = H5Gcreate2(file, "/planted", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  for (const char* name : {"/planted/mean", "/planted/std"}) {
    H5Dclose(H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  }
  H5Gclose(group);
  H5Pclose(creation);
  H5Sclose(space);
  ASSERT_GE(H5Fclose(file), 0);
  const Outcome outcome = rowmill({"stats", folder / "x.h5:/X", "-o", folder / "out.h5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("planted"), std::string::npos) << outcome.out;
}

TEST(Program, GenerateThatIsInterrupted_LeavesNothing) {
  for (const char* name : {"g.h5", "g.npy"}) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      Folder folder;
      std::thread meddler;
      const auto interrupt = [&](pid_t process) {
        meddler = std::thread([&folder, process, signal] {
          // the answers are written first, so that a file begins a moment before its rows
          const auto writes = [&] {
            const std::string files = "/proc/" + std::to_string(process) + "/fd";
            std::error_code gone;
            for (std::filesystem::directory_iterator entry(files, gone), end; !gone && entry != end;
                 entry.increment(gone)) {
              std::error_code closed;
              if (std::filesystem::read_symlink(entry->path(), closed).string().starts_with(folder.path())) return true;
            }
            return false;
          };
          for (int tries = 0; tries < 3000 && !writes(); ++tries)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          kill(process, signal);
        });
      };
      const Outcome outcome = rowmill({"generate", folder / name, "--shape", "100000000x20"}, 0, 120, interrupt);
      meddler.join();
      expect_one_line(outcome, 1, "was not written");
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 0) << name << " " << signal;
    }
  }
}

TEST(Program, OutputThatCannotBePrinted_IsAnError) {
  Folder folder;
  test::write_h5(folder / "x.h5", counting(10, 2));
  test::Command command;
  command.words = {"sh", "-c", "exec \"$0\" stats \"$1\" --json >/dev/full", test::program(), folder / "x.h5"};
  expect_one_line(test::run_program(command), 1, "standard output");
  command.words = {
      "sh", "-c", "exec \"$0\" stats \"$1\" -o \"$2\" >/dev/full", test::program(), folder / "x.h5", folder / "out.h5"};
  expect_one_line(test::run_program(command), 1, "out.h5 was written and is whole");
  EXPECT_EQ(test::read_result(folder / "out.h5", "max").size(), 2U);
}

}  // namespace
}  // namespace rowmill
