#include "app/options.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "jobs/job.hpp"
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
                               "--io",
                               "mpiio",
                               "--device-memory",
                               "3GiB"});
  ASSERT_TRUE(parsed.line) << parsed.text;
  const RunOptions& run = parsed.line->run;
  EXPECT_EQ(run.job, "cov");
  EXPECT_EQ(run.inputs, std::vector<std::string>{"f.h5:/X"});
  EXPECT_EQ(run.output, "out.h5");
  EXPECT_EQ(run.io, "mpiio");
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
  EXPECT_EQ(columns_of("0, 1 , 2 : 4"), (std::vector<ColumnRange>{{0, 0}, {1, 1}, {2, 3}}));
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
                           "--columns=:0", "--columns=-1", "--columns=-2:4", "--columns=1:2:3", "--columns=0 1"}) {
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

/// One line that begins as all errors do, and holds each of the words.
void expect_mistake(const std::vector<const char*>& words, const std::vector<std::string>& mentions) {
  const Parsed parsed = parse(words);
  EXPECT_FALSE(parsed.line) << parsed.text;
  EXPECT_EQ(parsed.exit_code, 2) << parsed.text;
  EXPECT_EQ(std::count(parsed.text.begin(), parsed.text.end(), '\n'), 1) << parsed.text;
  EXPECT_EQ(parsed.text.find("rowmill: error: "), 0U) << parsed.text;
  EXPECT_EQ(parsed.text.find("generate: generate"), std::string::npos) << parsed.text;
  for (const std::string& mention : mentions) {
    EXPECT_NE(parsed.text.find(mention), std::string::npos) << "'" << mention << "' is not in: " << parsed.text;
  }
}

TEST(Options, ThatAreMisspelt_AreNamedWithTheNearest) {
  expect_mistake({"cov", "f.h5", "--memmory", "2GB"}, {"no option --memmory;", "did you mean --memory?", "cov --help"});
  expect_mistake({"cov", "--memmory=2GB", "f.h5"}, {"no option --memmory;", "did you mean --memory?"});
  expect_mistake({"cov", "--memmory", "2GB"}, {"did you mean --memory?"});
  expect_mistake({"cov", "f.h5", "--out", "o.h5"}, {"did you mean --output?"});
  expect_mistake({"cov", "f.h5", "-threads", "2"}, {"no option -threads;", "did you mean --threads?"});
  expect_mistake({"gram", "f.h5", "--ddof", "1"}, {"gram has no option --ddof", "one of cov"});
  expect_mistake({"stats", "f.h5", "--shape", "1x1"}, {"stats has no option --shape", "one of generate"});
  expect_mistake({"stat", "f.h5"}, {"no command 'stat'", "did you mean stats?"});
  EXPECT_EQ(parse({"cov", "f.h5", "--qqqqqqqq"}).text.find("did you mean"), std::string::npos);
}

TEST(Options, WithoutTheirValue_AreNamedWithWhatTheyTake) {
  expect_mistake({"cov", "f.h5", "-o"}, {"--output needs a value: the HDF5 file to write"});
  expect_mistake({"cov", "f.h5", "-o", "--overwrite"}, {"--output: '--overwrite' is no name of a file", "-o out.h5"});
  expect_mistake({"cov", "f.h5", "--format"}, {"--format needs a value: auto, hdf5"});
  expect_mistake({"cov"}, {"INPUT is missing: FILE or FILE:/DATASET"});
  expect_mistake({"generate", "x.h5"}, {"--shape is missing: ROWSxCOLUMNS"});
}

TEST(Options, OfWrongSizesAndDurations_AreNamedWithWhereTheyCameFrom) {
  test::Folder folder;
  const std::string config = folder / "c.toml";
  const std::string file = "(in " + config + ")";
  expect_mistake({"cov", "f.h5", "--memory", "2XB"}, {"--memory: '2XB' is not a size"});
  expect_mistake({"cov", "f.h5", "--timeout", "soon"}, {"--timeout: 'soon' is not a duration"});
  setenv("ROWMILL_MEMORY", "2XB", 1);
  expect_mistake({"cov", "f.h5"}, {"--memory: '2XB' is not a size", "(from ROWMILL_MEMORY)"});
  EXPECT_EQ(parse({"cov", "f.h5", "--memory", "3XB"}).text.find("ROWMILL_MEMORY"), std::string::npos);
  unsetenv("ROWMILL_MEMORY");
  for (const char* text : {"memory = 2XB\n", "threads = \"two\"\n", "rows = \"5:5\"\n", "timeout = \"1d\"\n"}) {
    std::ofstream(config) << text;
    expect_mistake({"cov", "f.h5", "--config", config.c_str()}, {"--" + std::string(text).substr(0, 4), file});
  }
  setenv("ROWMILL_CONFIG", "no such file", 1);
  expect_mistake({"cov", "f.h5"}, {"no such file: No such file", "(from ROWMILL_CONFIG)"});
  unsetenv("ROWMILL_CONFIG");
  const Parsed decimal = parse({"cov", "f.h5", "--memory", "2GB"});
  ASSERT_TRUE(decimal.line) << decimal.text;
  EXPECT_EQ(decimal.line->run.memory, 2000000000);
}

TEST(Options, OfAFile_InSectionsOrMisspelt_AreRefusedWithWhatToDo) {
  test::Folder folder;
  const std::string config = folder / "c.toml";
  const auto expect_config = [&](const char* text, const std::vector<std::string>& mentions) {
    std::ofstream(config) << text;
    expect_mistake({"cov", "f.h5", "--config", config.c_str()}, mentions);
  };
  expect_config("[stats]\nddof = 0\n", {config, "sections such as [stats] are not used"});
  expect_config("treads = 3\n", {config, "'treads'", "did you mean threads?"});
}

TEST(Options, RangesThatAreNone_SayWhatToWrite) {
  const auto rows = [](const char* text, const std::string& cure) {
    expect_mistake({"cov", "f.h5", "--rows", text}, {"--rows: '", text, cure});
  };
  rows("10:5", "ends before it begins");
  rows("5:5", "is empty: the end of a range is not in it");
  rows("-10:", "is below 0: rows count from 0");
  rows("a:b", "write A:B in whole numbers");
  rows("7", "write 7:8 for row 7 alone");
  rows("1-3", "write 1:4 for 1 to 3");
  const auto columns = [](const char* text, const std::string& cure) {
    expect_mistake({"cov", "f.h5", "--columns", text}, {"--columns: ", cure});
  };
  columns("0,1-3", "'1-3' is not a range: write 1:4 for 1 to 3");
  columns("-1", "columns count from 0");
  columns("age", "is not a column");
  columns("3:2", "ends before it begins");
  for (const char* command : {"stats", "gram", "cov"}) {
    EXPECT_NE(parse({command, "--help"}).text.find("counted from 0"), std::string::npos) << command;
  }
}

TEST(Options, SeveralOutputsOfGenerate_AreRefused) {
  expect_mistake({"generate", "a.h5", "b.h5", "c.h5", "d.h5", "e.h5", "--shape", "1x1"},
                 {"several outputs are given (a.h5, b.h5, c.h5, d.h5 and 1 more)", "writes one"});
}

TEST(Options, OfGenerate_ThatMakeNoSense_AreNamedOnce) {
  expect_mistake({"generate", "x.h5", "--shape", "3"}, {"--shape: '3' is not ROWSxCOLUMNS"});
  expect_mistake({"generate", "x.h5", "--shape", "3x3", "--type", "foo"}, {"no type 'foo'"});
}

TEST(Options, HelpOfAJob_TellsWhatItsRegistryEntrySays) {
  EXPECT_EQ(parse({"help", "cov"}).text, parse({"cov", "--help"}).text);
  EXPECT_EQ(parse({"help", "cov"}).exit_code, 0);
  expect_mistake({"help", "cow"}, {"no command 'cow'", "did you mean cov?"});
  const std::string overview = parse({"help"}).text;
  for (const JobTraits& job : all_jobs()) {
    EXPECT_NE(overview.find("  " + job.name + " "), std::string::npos) << overview;
    EXPECT_NE(overview.find(job.gives), std::string::npos) << overview;
    const std::string help = parse({job.name.c_str(), "--help"}).text;
    EXPECT_EQ(help.find("--ddof") != std::string::npos, job.has_ddof) << job.name;
    EXPECT_EQ(help.find("--rtol") != std::string::npos, job.has_precision) << job.name;
    EXPECT_EQ(help.find("10 times at most") != std::string::npos, job.has_precision && job.shifts) << job.name;
  }
  const std::string generate = parse({"generate", "--help"}).text;
  for (const char* option : {"default 1, of integers 4", "default 0, of unsigned", "default 1, of integers 10"}) {
    EXPECT_NE(generate.find(option), std::string::npos) << option;
  }
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
