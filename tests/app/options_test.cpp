#include "app/options.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/files.hpp"

namespace rowmill {
namespace {

Parsed parse(std::vector<const char*> words) {
  words.insert(words.begin(), "rowmill");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

TEST(Options, OfAJob_AreUnderstood) {
  const Parsed parsed = parse({"cov",
                               "f.h5:/X",
                               "-o",
                               "out.h5",
                               "--overwrite",
                               "--rows",
                               "10:200",
                               "--columns",
                               "3,5:8,0",
                               "--ddof",
                               "0",
                               "--missing",
                               "propagate",
                               "--precision",
                               "fp64",
                               "--rtol",
                               "1e-7",
                               "--memory",
                               "64MiB",
                               "--block-rows",
                               "99",
                               "--prefetch",
                               "3",
                               "--io-threads",
                               "5",
                               "--threads",
                               "6",
                               "--timeout",
                               "5s",
                               "--progress",
                               "log",
                               "--json",
                               "--row-axis",
                               "1",
                               "--format",
                               "hdf5",
                               "--backend",
                               "cuda",
                               "--comm",
                               "mpi",
                               "--device-memory",
                               "3GiB"});
  ASSERT_TRUE(parsed.line) << parsed.text;
  const RunOptions& run = parsed.line->run;
  EXPECT_EQ(run.job, "cov");
  EXPECT_EQ(run.inputs, std::vector<std::string>{"f.h5:/X"});
  EXPECT_EQ(run.output, "out.h5");
  EXPECT_TRUE(run.overwrite);
  EXPECT_EQ(run.first_row, 10);
  EXPECT_EQ(run.end_row, 200);
  EXPECT_EQ(run.columns, (std::vector<ColumnRange>{{3, 3}, {5, 7}, {0, 0}}));
  EXPECT_EQ(run.ddof, 0);
  EXPECT_EQ(run.missing, "propagate");
  EXPECT_EQ(run.precision, "fp64");
  EXPECT_EQ(run.rtol, 1e-7);
  EXPECT_EQ(run.memory, 64 << 20);
  EXPECT_EQ(run.block_rows, 99);
  EXPECT_EQ(run.prefetch, 3);
  EXPECT_EQ(run.io_threads, 5);
  EXPECT_EQ(run.threads, 6);
  EXPECT_EQ(run.timeout, std::chrono::seconds(5));
  EXPECT_EQ(run.row_axis, 1);
  EXPECT_EQ(run.backend, "cuda");
  EXPECT_EQ(run.comm, "mpi");
  EXPECT_EQ(run.device_memory, std::int64_t{3} << 30);
  EXPECT_TRUE(parsed.line->json);
}

TEST(Options, ThatWereResolved_StandInTheCommandAttribute) {
  const Parsed parsed = parse({"stats", "f.h5", "--ddof", "0"});
  ASSERT_TRUE(parsed.line) << parsed.text;
  const auto all = nlohmann::json::parse(parsed.line->run.command_json);
  EXPECT_EQ(all.at("command"), "stats");
  EXPECT_EQ(all.at("input"), "f.h5");
  EXPECT_EQ(all.at("ddof"), 0);
  EXPECT_EQ(all.at("overwrite"), false);
  EXPECT_EQ(all.at("prefetch"), 4);
  EXPECT_EQ(all.at("timeout"), "10m");
}

TEST(Options, FromTheEnvironmentAndAFile_GiveWayToTheCommandLine) {
  test::Folder folder;
  std::ofstream(folder / "c.toml") << "ddof = 3\nprefetch = 7\nmemory = \"1GiB\"\n";
  setenv("ROWMILL_THREADS", "9", 1);
  setenv("ROWMILL_BLOCK_ROWS", "123", 1);
  const std::string config = folder / "c.toml";
  const Parsed parsed = parse({"cov", "f.h5", "--config", config.c_str(), "--prefetch", "8", "--threads", "2"});
  unsetenv("ROWMILL_THREADS");
  unsetenv("ROWMILL_BLOCK_ROWS");
  ASSERT_TRUE(parsed.line) << parsed.text;
  EXPECT_EQ(parsed.line->run.ddof, 3);
  EXPECT_EQ(parsed.line->run.prefetch, 8);
  EXPECT_EQ(parsed.line->run.memory, 1 << 30);
  EXPECT_EQ(parsed.line->run.threads, 2);
  EXPECT_EQ(parsed.line->run.block_rows, 123);
}

TEST(Options, SeveralInputs_AreTakenInTheirOrder) {
  const Parsed parsed = parse({"stats", "b.h5", "--ddof", "0", "a*.h5:/X", "-o", "out.h5", "c.npy"});
  ASSERT_TRUE(parsed.line) << parsed.text;
  const std::vector<std::string> inputs = {"b.h5", "a*.h5:/X", "c.npy"};
  EXPECT_EQ(parsed.line->run.inputs, inputs);
  EXPECT_EQ(parsed.line->run.output, "out.h5");
  EXPECT_EQ(nlohmann::json::parse(parsed.line->run.command_json).at("input"), inputs);
}

TEST(Options, ThatAreWrong_ExitWithTwoAndOneLine) {
  const std::vector<std::vector<const char*>> wrong = {{"cow", "f.h5"},
                                                       {"cov"},
                                                       {"cov", "f.h5", "--nosuch"},
                                                       {"cov", "f.h5", "--memory", "lots"},
                                                       {"cov", "f.h5", "--rows", "7"},
                                                       {"cov", "f.h5", "--ddof", "-1"},
                                                       {"cov", "f.h5", "--missing", "zero"},
                                                       {"cov", "f.h5", "--backend", "gpu"},
                                                       {"cov", "f.h5", "--comm", "tcp"},
                                                       {"cov", "f.h5", "--backend", "host", "--comm", "nccl"},
                                                       {"cov", "f.h5", "--device-memory", "much"},
                                                       {"cov", "f.h5", "--precision", "fp8"},
                                                       {"cov", "f.h5", "--columns", "1:1"},
                                                       {"cov", "f.h5", "--format", "parquet"},
                                                       {"gram", "f.h5", "--ddof", "1"},
                                                       {"generate", "x.h5"},
                                                       {"cov", "f.h5", "--timeout", "5 parsecs"}};
  for (const auto& words : wrong) {
    const Parsed parsed = parse(words);
    EXPECT_FALSE(parsed.line) << words.back();
    EXPECT_EQ(parsed.exit_code, 2) << words.back();
    EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
  }
}

TEST(Options, NumbersThatAreNotWhatTheyLook_AreRefusedInAShortLine) {
  const std::vector<std::vector<const char*>> wrong = {
      {"cov", "f.h5", "--rtol", "nan"},
      {"cov", "f.h5", "--rtol", "inf"},
      {"cov", "f.h5", "--rtol", "0"},
      {"cov", "f.h5", "--block-rows", "-1"},
      {"cov", "f.h5", "--block-rows", "9223372036854775808"},
      {"cov", "f.h5", "--threads", "two"},
      {"cov", "f.h5", "--prefetch", "0"},
      {"cov", "f.h5", "--ddof", "1.5"},
      {"cov", "f.h5", "--timeout", "1ms"},
      {"cov", "f.h5", "--format", "a\nb"},
      {"c\nv", "f.h5"},
      {"generate", "x.h5", "--shape", "9x9", "--missing-share", "nan"},
      {"generate", "x.h5", "--shape", "9x9", "--noise", "nan"},
      {"generate", "x.h5", "--shape", "9x9", "--mean-offset", "inf"},
      {"generate", "x.h5", "--shape", "9x9", "--seed", "-1"},
      {"generate", "x.h5", "--shape", "9x9", "--seed", "18446744073709551616"}};
  for (const auto& words : wrong) {
    const Parsed parsed = parse(words);
    EXPECT_FALSE(parsed.line) << words.back();
    EXPECT_EQ(parsed.exit_code, 2) << words.back();
    EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
    EXPECT_LT(parsed.text.size(), 200U) << parsed.text;
  }
}

TEST(Options, RangesWithOpenEnds_ReachToTheFirstAndTheLast) {
  const auto columns_of = [](const char* text) {
    const Parsed parsed = parse({"cov", "f.h5", "--columns", text});
    EXPECT_TRUE(parsed.line) << parsed.text;
    return parsed.line ? parsed.line->run.columns : std::vector<ColumnRange>{{-1, -1}};
  };
  EXPECT_EQ(columns_of("3:"), (std::vector<ColumnRange>{{3, std::nullopt}}));
  EXPECT_EQ(columns_of(":3"), (std::vector<ColumnRange>{{0, 2}}));
  EXPECT_EQ(columns_of("7,2:,:1"), (std::vector<ColumnRange>{{7, 7}, {2, std::nullopt}, {0, 0}}));
  EXPECT_TRUE(columns_of(":").empty()) << "all, without picking them one by one";
  using Rows = std::pair<std::int64_t, std::optional<std::int64_t>>;
  const std::vector<std::pair<const char*, Rows>> rows = {
      {"3:", {3, std::nullopt}}, {":3", {0, 3}}, {":", {0, std::nullopt}}};
  for (const auto& [text, range] : rows) {
    const Parsed parsed = parse({"cov", "f.h5", "--rows", text});
    ASSERT_TRUE(parsed.line) << parsed.text;
    EXPECT_EQ(Rows(parsed.line->run.first_row, parsed.line->run.end_row), range) << text;
  }
}

TEST(Options, ListsOfColumnsWithGaps_AreRefused) {
  for (const char* text : {"--columns=0,", "--columns=,0", "--columns=0,,1", "--columns=,", "--columns=3:3",
                           "--columns=:0", "--columns=-1", "--columns=-2:4", "--columns=1:2:3", "--columns=0, 1"}) {
    const Parsed parsed = parse({"cov", "f.h5", text});
    EXPECT_FALSE(parsed.line) << text;
    EXPECT_EQ(parsed.exit_code, 2) << text;
    EXPECT_NE(parsed.text.find("--columns"), std::string::npos) << parsed.text;
    EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
  }
}

TEST(Options, ThatAreEmpty_DoNotMeanTheDefault) {
  for (const char* option : {"--output", "--rows", "--columns"}) {
    const Parsed parsed = parse({"cov", "f.h5", option, ""});
    EXPECT_EQ(parsed.exit_code, 2) << option;
    EXPECT_NE(parsed.text.find("empty"), std::string::npos) << parsed.text;
  }
}

TEST(Options, NumbersWithLeadingZeros_AreDecimal) {
  const Parsed parsed = parse({"cov", "f.h5", "--block-rows", "010", "--threads", "08"});
  ASSERT_TRUE(parsed.line) << parsed.text;
  EXPECT_EQ(parsed.line->run.block_rows, 10);
  EXPECT_EQ(parsed.line->run.threads, 8);
}

TEST(Options, OfAFile_ThatNoCommandKnows_AreRefused) {
  test::Folder folder;
  const std::string config = folder / "c.toml";
  for (const char* text : {"treads = 3\n", "[cov]\nddof = 0\n", "\x89HDF\r\n\x1a\n = \xff\n"}) {
    std::ofstream(config) << text;
    const Parsed parsed = parse({"cov", "f.h5", "--config", config.c_str()});
    EXPECT_EQ(parsed.exit_code, 2) << text;
    EXPECT_NE(parsed.text.find(config), std::string::npos) << parsed.text;
    EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
  }
  std::ofstream(config) << "ddof = 0\nseed = 4\nthreads = 3\n";  // one file for all commands
  const Parsed parsed = parse({"info", "f.h5", "--config", config.c_str()});
  ASSERT_TRUE(parsed.line) << parsed.text;
  EXPECT_EQ(parsed.line->run.threads, 3);
}

TEST(Options, OfAFile_ThatIsNoRegularFileOrNotThere_AreRefusedAtOnce) {
  test::Folder folder;
  const std::string pipe = folder / "pipe", missing = folder / "missing";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& config : {pipe, missing, std::string("/dev/zero"), folder.path()}) {
    const Parsed parsed = parse({"cov", "f.h5", "--config", config.c_str()});
    EXPECT_EQ(parsed.exit_code, 2) << config;
    EXPECT_NE(parsed.text.find(config), std::string::npos) << parsed.text;
  }
  setenv("ROWMILL_CONFIG", missing.c_str(), 1);
  EXPECT_EQ(parse({"cov", "f.h5"}).exit_code, 2);
  std::ofstream(folder / "c.toml") << "threads = 3\n";
  setenv("ROWMILL_CONFIG", (folder / "c.toml").c_str(), 1);
  const Parsed parsed = parse({"cov", "f.h5"});
  unsetenv("ROWMILL_CONFIG");
  ASSERT_TRUE(parsed.line) << parsed.text;
  EXPECT_EQ(parsed.line->run.threads, 3);
}

TEST(Options, OfGenerate_AreUnderstood) {
  const Parsed parsed = parse({"generate", "x.h5:/a/b", "--shape", "1000x20", "--type", ">int16", "--chunk", "100x20",
                               "--filter", "shuffle+gzip", "--seed", "5", "--rank", "2", "--noise", "0.5"});
  ASSERT_TRUE(parsed.line) << parsed.text;
  const GenerateOptions& g = parsed.line->generate;
  EXPECT_EQ(g.path, "x.h5");
  EXPECT_EQ(g.dataset, "/a/b");
  EXPECT_EQ(g.rows, 1000);
  EXPECT_EQ(g.columns, 20);
  EXPECT_EQ(g.type, DType::i16);
  EXPECT_TRUE(g.big_endian);
  EXPECT_EQ(g.chunk_rows, 100);
  EXPECT_EQ(g.seed, 5U);
  EXPECT_EQ(g.noise, 0.5);
}

TEST(Options, OfGenerate_ThatWouldDoNothing_AreRefusedWithWhatToAdd) {
  const std::vector<std::pair<std::vector<const char*>, const char*>> idle = {
      {{"--gzip-level", "6"}, "add --filter gzip"},
      {{"--gzip-level=6", "--chunk", "5x5"}, "add --filter gzip"},
      {{"--rank", "0", "--loading", "2"}, "a rank of 1 or more"}};
  for (const auto& [options, cure] : idle) {
    std::vector<const char*> words = {"generate", "x.h5", "--shape", "9x9"};
    words.insert(words.end(), options.begin(), options.end());
    const Parsed parsed = parse(words);
    EXPECT_FALSE(parsed.line) << options[0];
    EXPECT_EQ(parsed.exit_code, 2) << options[0];
    EXPECT_NE(parsed.text.find(cure), std::string::npos) << parsed.text;
    EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
  }
  EXPECT_TRUE(
      parse({"generate", "x.h5", "--shape", "9x9", "--chunk", "5x5", "--filter", "gzip", "--gzip-level", "6"}).line);
  setenv("ROWMILL_GZIP_LEVEL", "6", 1);  // a default for files that have a filter
  EXPECT_TRUE(parse({"generate", "x.h5", "--shape", "9x9"}).line);
  unsetenv("ROWMILL_GZIP_LEVEL");
}

TEST(Options, OfGenerate_ThatNameADataSetOfAnNpyFile_AreRefused) {
  const Parsed parsed = parse({"generate", "x.npy:/Y", "--shape", "9x9"});
  EXPECT_FALSE(parsed.line);
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_NE(parsed.text.find("leave out :/Y"), std::string::npos) << parsed.text;
  EXPECT_TRUE(parse({"generate", "x.npy", "--shape", "9x9"}).line);
}

TEST(Options, HelpAndVersion_ArePrintedWithExitZero) {
  EXPECT_EQ(parse({"--help"}).exit_code, 0);
  EXPECT_EQ(parse({"--version"}).text.substr(0, 8), "rowmill ");
  for (const char* command : {"info", "stats", "gram", "cov", "generate"}) {
    const Parsed parsed = parse({command, "--help"});
    EXPECT_EQ(parsed.exit_code, 0);
    EXPECT_NE(parsed.text.find("--config"), std::string::npos) << parsed.text;
  }
  EXPECT_EQ(parse({}).exit_code, 2);
}

}  // namespace
}  // namespace rowmill
