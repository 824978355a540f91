// Wiring only: from the command line to a command.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>

#include "app/info.hpp"
#include "app/options.hpp"
#include "app/text.hpp"
#include "comm/world.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "engine/run.hpp"
#include "engine/watch.hpp"
#include "io/generate.hpp"
#include "io/open.hpp"

namespace rowmill {

namespace {

/// Before MPI is started: is this the rank that speaks?
bool speaks_before_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  }
  return true;
}

/// Nothing if it is not one column of as many doubles as `rows`, whatever a file claims.
std::vector<double> small_dataset(const std::string& input, std::int64_t rows_wanted) {
  InputRequest request;
  request.inputs = {input};
  request.format = "hdf5";
  const auto source = make_source(plan_input(request), request);
  const SourceInfo& info = source->info();
  if (info.rows != rows_wanted || info.columns != 1 || info.type != ElementType{DType::f64, false}) return {};
  std::vector<double> values(static_cast<std::size_t>(info.rows));
  const RowRange rows{0, info.rows};
  if (source->bytes_for(rows) > values.size() * sizeof(double)) return {};
  source->read(rows, std::as_writable_bytes(std::span(values)));
  return values;
}

/// What `rowmill generate` wrote beside the data, for the columns that were milled.
Planted planted_in(const RunReport& report) {
  Planted planted;
  const std::vector<std::int64_t>& shape = report.source.shape;
  if (!report.source.has_planted || report.source.row_axis != 0 || shape.size() != 2) return planted;
  try {
    planted.mean = small_dataset(report.source.path + ":/planted/mean", shape[1]);
    planted.deviation = small_dataset(report.source.path + ":/planted/std", shape[1]);
  } catch (const std::exception&) {
    return {};  // they are an extra
  }
  for (auto* values : {&planted.mean, &planted.deviation}) {
    std::vector<double> chosen;
    for (const std::int64_t j : report.chosen_columns) {
      if (j < static_cast<std::int64_t>(values->size())) chosen.push_back((*values)[static_cast<std::size_t>(j)]);
    }
    if (!report.chosen_columns.empty()) *values = chosen;
  }
  return planted;
}

int run_job(const CommandLine& line, World& world) {
  const RunReport report = run(line.run, world);
  if (!report.error.empty()) spdlog::error(report.error);
  if (report.exit_code == ExitCode::ok && world.rank() == 0) {
    const std::string text = with_heartbeats(world.communicator(), {Heartbeat::Stage::finishing}, [&] {
      return line.json ? result_json(line, report) : result_table(line, report, planted_in(report));
    });
    std::fputs(text.c_str(), stdout);
  }
  return static_cast<int>(report.exit_code);
}

/// A command that one rank does while the others wait.
int run_on_first_rank(World& world, const std::function<std::string()>& work) {
  Communicator& ranks = world.communicator();
  std::optional<Failure> mine;
  std::string text;
  try {
    if (world.rank() == 0) text = with_heartbeats(ranks, {Heartbeat::Stage::planning}, work);
  } catch (const Error& error) {
    mine = Failure{error.code(), error.row(), error.what()};
  } catch (const std::exception& error) {
    mine = Failure{ExitCode::failed, std::nullopt, error.what()};
  }
  const Agreement agreement = ranks.agree(mine, {Heartbeat::Stage::finishing});
  if (mine) spdlog::error(mine->message);
  std::fputs(text.c_str(), stdout);
  return static_cast<int>(agreement.code);
}

int run_command(const CommandLine& line, World& world) {
  if (line.command == "generate") {
    return run_on_first_rank(world, [&] {
      generate(line.generate);
      return wrote_text(line);
    });
  }
  if (line.command == "info") {
    return run_on_first_rank(world, [&] {
      World alone = World::single();
      return describe_input(line, alone);
    });
  }
  return run_job(line, world);
}

/// Help, version, or a mistake. Mistakes of many ranks are agreed on: a launcher ends all ranks when the first ends
/// with an error, and the one that is to say why might be among them.
int say(const Parsed& parsed, int argc, char** argv) {
  if (parsed.exit_code == 0 || !launched_by_mpi()) {
    if (speaks_before_mpi()) std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
    return parsed.exit_code;
  }
  World world(argc, argv, std::chrono::minutes(1));
  const Failure mine{static_cast<ExitCode>(parsed.exit_code), std::nullopt, parsed.text};
  const Agreement agreement = world.communicator().agree(mine, {Heartbeat::Stage::starting});
  std::fputs(agreement.message.c_str(), stderr);
  return static_cast<int>(agreement.code);
}

int main_of_rank(int argc, char** argv) {
  Parsed parsed = parse_command_line(argc, argv);
  if (!parsed.line) return say(parsed, argc, argv);
  const CommandLine line = std::move(*parsed.line);
  start_log(line.log_level, 0, 1);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the sizes of files is an error of write() then, like a full disk
  try {
    if (line.command == "generate") skip_hdf5_cleanup_at_exit();
    World world(argc, argv, line.run.timeout, std::chrono::seconds(30), line.run.io != "direct");
    start_log(line.log_level, world.rank(), world.size());
    const int exit_code = run_command(line, world);
    // before the World ends: launchers end all ranks when the first ends with an error
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw Error(ExitCode::failed, lost_text(line));
    }
    return exit_code;
  } catch (const Error& error) {
    spdlog::error(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
    return static_cast<int>(ExitCode::failed);
  }
}

}  // namespace

}  // namespace rowmill

int main(int argc, char** argv) {
  return rowmill::main_of_rank(argc, argv);
}
