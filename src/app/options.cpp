#include "app/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/checks.hpp"
#include "app/mistakes.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "io/open.hpp"
#include "jobs/job.hpp"
#include "rowmill_version.hpp"

namespace rowmill {

namespace {

/// Ranks beat some times a second: below this, live ones are called silent, and each by the other.
constexpr std::chrono::seconds shortest_timeout{1};
constexpr double largest = std::numeric_limits<double>::max();

std::string overview() {
  std::string text =
      R"(rowmill mills rows: it streams a matrix far larger than memory out of HDF5 and keeps small, exact sums.

usage: rowmill COMMAND INPUT[:/DATASET]... [options] [-o OUT.h5]
       mpirun -n 4 rowmill COMMAND ...

commands
)";
  const auto add = [&text](const std::string& name, const std::string& gives) {
    text += "  " + name + std::string(std::max<std::size_t>(10, name.size() + 2) - name.size(), ' ') + gives + "\n";
  };
  add("info", "what a file holds, how it is stored, what would be milled, expected time and memory");
  for (const JobTraits& job : all_jobs()) add(job.name, job.gives);
  add("generate", "a synthetic data set with known answers");
  return text + R"(
rowmill COMMAND --help lists a command's options; rowmill --version says the version.
Exit codes: 0 done, 1 failed while running, 2 wrong usage, 3 input cannot be used, 4 device or communication failed.
)";
}

/// Options as text, before they are understood.
struct Words {
  std::string rows, columns, memory = "0", device_memory = "0", timeout = "10m", shape, type = "float32", chunk,
                             dataset;
};

std::string environment_name(const std::string& option) {
  std::string name = "ROWMILL_";
  for (const char c : option) name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

/// Adds --name with its environment variable and its default shown.
template <typename T>
CLI::Option* add(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  return app.add_option("--" + name, value, help)->envname(environment_name(name))->capture_default_str();
}

void add_general(CLI::App& app, CommandLine& line) {
  add(app, "log-level", line.log_level,
      "trace, debug, info, warn, error or off; an error that ends the run is always said")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.add_flag("--json", line.json, "print one JSON object instead of a table")->envname("ROWMILL_JSON");
  app.set_config("--config", "", "a TOML file with defaults for these options")->check(config_file());
  app.set_version_flag("--version", std::string("rowmill ") + version);
}

void add_input(CLI::App& app, CommandLine& line) {
  RunOptions& run = line.run;
  app.add_option("INPUT", run.inputs,
                 "FILE or FILE:/DATASET; several, or a quoted pattern as in 'runs/*.h5:/X', are joined along rows")
      ->required();
  add(app, "format", run.format, "auto, hdf5, netcdf, matlab, anndata, 10x, loom, pandas or npy")
      ->check(CLI::IsMember({"auto", "hdf5", "netcdf", "matlab", "anndata", "10x", "loom", "pandas", "npy"}));
  add(app, "row-axis", run.row_axis, "the axis that is rows, counted from 0; the others are columns")
      ->transform(whole_number_within(0, 31));
}

void add_output(CLI::App& app, std::string& output, bool& overwrite) {
  app.add_option("-o,--output", output, "the HDF5 file to write, as in out.h5")
      ->check(file_name())
      ->envname("ROWMILL_OUTPUT");
  app.add_flag("--overwrite", overwrite, "replace the output if it exists")->envname("ROWMILL_OVERWRITE");
}

void add_running(CLI::App& app, RunOptions& run, Words& words) {
  add(app, "backend", run.backend, "where to compute: auto (a GPU where every rank has one), host or cuda")
      ->check(CLI::IsMember({"auto", "host", "cuda"}));
  add(app, "comm", run.comm, "how sums travel between GPUs: auto, nccl or mpi")
      ->check(CLI::IsMember({"auto", "nccl", "mpi"}));
  add(app, "memory", words.memory,
      "of a node, shared by its ranks, as in 8GiB or 8GB (10^9 bytes each); 0: a quarter of what is free; of sparse "
      "rows, if it is enough, a tenth of what they would take dense")
      ->check(read_by(parse_size));
  add(app, "device-memory", words.device_memory, "of a GPU for a rank, as in 40GiB; 0: nine tenths of what is free")
      ->check(read_by(parse_size));
  add(app, "scratch", run.scratch, "a folder for decoded storage chunks that --memory does not hold")
      ->check(read_by([](const std::string&) {}));
  add(app, "block-rows", run.block_rows, "rows of a block; 0: chosen by source and job")
      ->transform(whole_number_within(0, std::numeric_limits<std::int64_t>::max()));
  add(app, "prefetch", run.prefetch, "blocks to read ahead")->transform(whole_number_within(1, 4096));
  add(app, "io-threads", run.io_threads, "reading threads of a rank; 0: as --threads")
      ->transform(whole_number_within(0, 1024));
  add(app, "threads", run.threads, "computing threads of a rank; 0: the node's processors dealt among its ranks")
      ->transform(whole_number_within(0, 4096));
  add(app, "timeout", words.timeout, "how long a rank may be silent, as in 30s or 5m; 0: for ever")
      ->check(read_by(parse_duration));
  add(app, "progress", run.progress, "auto, bar, log or none")->check(CLI::IsMember({"auto", "bar", "log", "none"}));
}

void add_job(CLI::App& app, CommandLine& line, Words& words) {
  RunOptions& run = line.run;
  add_input(app, line);
  add_output(app, run.output, run.overwrite);
  add(app, "io", run.io,
      "direct; or mpiio, for trusted files on parallel file systems: by HDF5 and MPI-IO, each rank on its own, or with "
      "mpiio-collective all at once")
      ->check(CLI::IsMember({"direct", "mpiio", "mpiio-collective"}));
  add(app, "rows", words.rows, "only the rows A:B, counted from 0; B is not included; either end may be left out")
      ->check(read_by([](const std::string& text) { half_open(text, "row"); }));
  add(app, "columns", words.columns, "only these columns, counted from 0, as in 0,3,5:9 (5 to 8) or 20:")
      ->check(read_by(column_list));
  const JobTraits& job = traits_of(run.job);
  if (job.has_ddof) add(app, "ddof", run.ddof, "divide by rows minus this")->transform(whole_number_within(0, 1 << 30));
  add(app, "missing", run.missing,
      job.missing == Missing::skip ? "error or propagate; else counted and skipped"
                                   : "error or propagate (default error)")
      ->check(CLI::IsMember({"error", "propagate"}));
  if (job.has_precision) {
    add(app, "precision", run.precision,
        "of products inside a block: auto, fp64 or fp32; on a GPU also tf32, bf16, fp16, bf16x3 or int8")
        ->check(CLI::IsMember({"auto", "fp64", "fp32", "tf32", "bf16", "fp16", "bf16x3", "int8"}));
    add(app, "rtol", run.rtol,
        std::string("error bound, of the scale sqrt(C_ii C_jj), that auto keeps and --precision must meet") +
            (job.shifts ? ", before it is widened (10 times at most) where a column's first block misses its mean"
                        : "") +
            "; fp64 is taken as it is")
        ->check(positive_number());
  }
  add_running(app, run, words);
}

void add_generate(CLI::App& app, CommandLine& line, Words& words) {
  GenerateOptions& g = line.generate;
  app.add_option("OUTPUT", g.path, "FILE.h5, FILE.h5:/DATASET or FILE.npy")->required();
  app.add_flag("--overwrite", g.overwrite, "replace the file if it exists")->envname("ROWMILL_OVERWRITE");
  add(app, "shape", words.shape, "ROWSxCOLUMNS, as in 100000x64")->check(read_by(two_sizes))->required();
  add(app, "type", words.type, "float16, float32, float64, int8 … uint64; a leading '>' for big-endian");
  add(app, "chunk", words.chunk, "storage chunks of ROWSxCOLUMNS; contiguous if not given")->check(read_by(two_sizes));
  add(app, "filter", g.filter, "none, gzip or shuffle+gzip (needs --chunk)")
      ->check(CLI::IsMember({"none", "gzip", "shuffle+gzip"}));
  add(app, "gzip-level", g.gzip_level, "1 to 9")->transform(whole_number_within(1, 9));
  add(app, "seed", g.seed, "the same seed gives the same values")->transform(unsigned_number());
  add(app, "rank", g.rank, "of the planted covariance, besides the noise")->transform(whole_number_within(0, 4096));
  add(app, "noise", g.noise, "standard deviation of the part that columns do not share (default 1, of integers 4)")
      ->check(number_within(0.0, largest));
  add(app, "loading", g.loading, "standard deviation of the part that columns share (default 1, of integers 4)")
      ->check(number_within(0.0, largest));
  add(app, "mean-offset", g.mean_offset, "planted means are normal about this (default 0, of unsigned integers 128)")
      ->check(number_within(-largest, largest));
  add(app, "mean-spread", g.mean_spread, "standard deviation of the planted means (default 1, of integers 10)")
      ->check(number_within(0.0, largest));
  add(app, "missing-share", g.missing_share, "share of values that are NaN")->check(number_within(0.0, 0.999));
}

/// Options that would do nothing beside the others. Only those of the command line itself: a default from elsewhere may
/// be meant for other runs.
void refuse_idle_options(const GenerateOptions& g, const std::vector<std::string>& arguments) {
  const auto given = [&](const std::string& name) {
    return std::any_of(arguments.begin(), arguments.end(),
                       [&](const std::string& word) { return word == name || word.starts_with(name + "="); });
  };
  if (given("--gzip-level") && g.filter == "none")
    throw Error(ExitCode::usage, "--gzip-level does nothing without a filter: add --filter gzip");
  if (given("--loading") && g.rank == 0)
    throw Error(ExitCode::usage, "--loading does nothing with --rank 0: give a rank of 1 or more");
}

void understand_generate(GenerateOptions& g, const Words& words) {
  const auto [path, dataset] = split_input(g.path);
  g.path = path;
  if (!dataset.empty()) g.dataset = dataset;
  if (!dataset.empty() && path.ends_with(".npy"))
    throw Error(ExitCode::usage, path + ": a .npy file has no data sets: leave out :" + dataset);
  std::tie(g.rows, g.columns) = two_sizes(words.shape);
  if (!words.chunk.empty()) std::tie(g.chunk_rows, g.chunk_columns) = two_sizes(words.chunk);
  std::string type = words.type;
  g.big_endian = type.starts_with('>');
  if (g.big_endian) type.erase(0, 1);
  g.type = parse_generated_type(type);
}

void understand_run(RunOptions& run, const Words& words) {
  if (!words.rows.empty()) std::tie(run.first_row, run.end_row) = half_open(words.rows, "row");
  if (!words.columns.empty()) run.columns = column_list(words.columns);
  run.memory = parse_size(words.memory);
  run.device_memory = parse_size(words.device_memory);
  if (run.backend == "host" && run.comm == "nccl") {
    throw Error(ExitCode::usage, "--comm nccl is between GPUs, and --backend host uses none: leave one of them out");
  }
  run.timeout = parse_duration(words.timeout);
  if (run.timeout.count() > 0 && run.timeout < shortest_timeout) {
    throw Error(ExitCode::usage, "--timeout " + words.timeout + " is shorter than the 1s in which ranks can be heard");
  }
}

/// Every option of the command with the value it has in the end.
std::string resolved(const std::string& command, const CLI::App& app) {
  nlohmann::json all{{"command", command}};
  for (const CLI::Option* option : app.get_options()) {
    std::string name = option->get_lnames().empty() ? option->get_name() : option->get_lnames().front();
    if (name == "help" || name == "version" || name == "config") continue;
    if (name == "INPUT") name = "input";
    const bool flag = option->get_expected_max() == 0, given = option->count() > 0;
    if (flag) {
      all[name] = given;
    } else if (name == "input" && option->results().size() > 1) {
      all[name] = option->results();
    } else {
      const std::string text = given ? option->results().back() : option->get_default_str();
      const auto number = nlohmann::json::parse(text, nullptr, false);
      all[name] = name != "input" && number.is_number() ? number : nlohmann::json(text);
    }
  }
  // names of files need not be UTF-8
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void add_options(CLI::App& app, CommandLine& line, Words& words) {
  if (line.command == "generate") {
    add_generate(app, line, words);
  } else if (line.command == "info") {
    add_input(app, line);
    add_running(app, line.run, words);
  } else {
    add_job(app, line, words);
  }
  add_general(app, line);
}

std::vector<std::string> command_names() {
  std::vector<std::string> commands = job_names();
  commands.insert(commands.end(), {"info", "generate"});
  return commands;
}

OptionNames options_of_all_commands() {
  OptionNames all;
  for (const std::string& command : command_names()) {
    CommandLine line;
    line.command = line.run.job = command;
    Words words;
    CLI::App app;
    add_options(app, line, words);
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) all[command].push_back(name);
    }
  }
  return all;
}

void parse_command(CLI::App& app, CommandLine& line, std::vector<std::string> arguments) {
  Words words;
  line.run.job = line.command;
  add_options(app, line, words);
  const std::vector<std::string> given = arguments;
  // CLI11 looks at the environment only after it has read the file
  const bool names_config =
      std::any_of(given.begin(), given.end(), [](const auto& word) { return word.starts_with("--config"); });
  if (const char* config = std::getenv("ROWMILL_CONFIG"); config != nullptr && !names_config)
    arguments.insert(arguments.begin(), {"--config", config});
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  app.parse(std::move(arguments));
  check_config(app, options_of_all_commands());
  if (line.command == "generate") {
    understand_generate(line.generate, words);
    refuse_idle_options(line.generate, given);
  } else {
    understand_run(line.run, words);
  }
  line.run.command_json = resolved(line.command, app);
}

/// One line, whatever the words on the command line hold.
Parsed mistake(const std::string& message, ExitCode code = ExitCode::usage) {
  return {std::nullopt, std::string("rowmill: error: ") + Error(code, message).what() + "\n", static_cast<int>(code)};
}

}  // namespace

Parsed parse_command_line(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) return {std::nullopt, overview(), 2};
  if (words[0] == "help" && words.size() > 1) words = {words[1], "--help"};
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") return {std::nullopt, overview(), 0};
  if (words[0] == "--version") return {std::nullopt, std::string("rowmill ") + version + "\n", 0};
  CommandLine line;
  line.command = words[0];
  const std::vector<std::string> commands = command_names();
  if (std::find(commands.begin(), commands.end(), line.command) == commands.end()) {
    const std::string hint = did_you_mean(line.command, commands);
    return mistake("there is no command '" + line.command + "'" + hint + (hint.empty() ? ";" : "") +
                   " rowmill --help lists them");
  }
  words.erase(words.begin());
  CLI::App app("rowmill " + line.command, "rowmill " + line.command);
  try {
    parse_command(app, line, words);
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help(), 0};
  } catch (const CLI::CallForVersion&) {
    return {std::nullopt, std::string("rowmill ") + version + "\n", 0};
  } catch (const CLI::ParseError& error) {
    return mistake(explain(error, app, line, words, options_of_all_commands()));
  } catch (const Error& error) {
    return mistake(error.what(), error.code());
  }
  return {std::move(line), {}, 0};
}

}  // namespace rowmill
