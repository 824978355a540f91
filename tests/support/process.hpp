#pragma once
// Runs programs in tests: arguments in, exit code and output out, never longer than a deadline.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sanitized.hpp"

namespace rowmill::test {

struct Outcome {
  int exit_code = -1;  ///< 128 + signal where a signal ended it; -1 where the deadline did
  std::string out, err;
  double seconds = 0;
  std::int64_t peak_memory = 0;  ///< bytes, of the child (not of its children)

  /// stderr without empty lines.
  std::vector<std::string> error_lines() const {
    std::vector<std::string> lines;
    std::string line;
    for (const char c : err + "\n") {
      if (c != '\n') {
        line += c;
      } else {
        if (!line.empty()) lines.push_back(line);
        line.clear();
      }
    }
    return lines;
  }
};

struct Command {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment = {};
  double deadline = 60;
  std::string folder = {};                    ///< where to run it
  std::function<void(pid_t)> meanwhile = {};  ///< called once it is started
};

/// Runs it in a process group of its own, which is killed at the deadline.
inline Outcome run_program(const Command& command) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  std::vector<char*> argv;
  for (const auto& word : command.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
    if (!command.folder.empty() && chdir(command.folder.c_str()) != 0) _exit(126);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  if (command.meanwhile) command.meanwhile(child);
  Outcome outcome;
  bool late = false;
  pollfd streams[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[2] = {&outcome.out, &outcome.err};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const double left = command.deadline - passed.count();
    if (left <= 0 && !late) {
      late = true;
      kill(-child, SIGKILL);
    }
    poll(streams, 2, late ? 1000 : static_cast<int>(left * 1000) + 1);
    for (int k = 0; k < 2; ++k) {
      if (streams[k].fd < 0 || streams[k].revents == 0) continue;
      char buffer[65536];
      const ssize_t bytes = read(streams[k].fd, buffer, sizeof buffer);
      if (bytes > 0) {
        texts[k]->append(buffer, static_cast<std::size_t>(bytes));
      } else {
        close(streams[k].fd);
        streams[k].fd = -1;
      }
    }
    if (late && streams[0].revents == 0 && streams[1].revents == 0) break;
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  outcome.peak_memory = usage.ru_maxrss * 1024;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!late) outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

inline const std::vector<std::pair<std::string, std::string>>& mpi_environment() {
  static const std::vector<std::pair<std::string, std::string>> variables = {
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"OMPI_MCA_pml", "ob1"},
      {"OMPI_MCA_btl", "self,vader"},
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      {"HWLOC_HIDE_ERRORS", "2"}};
  return variables;
}

inline std::string program() {
  return std::string(ROWMILL_BIN_DIR) + "/rowmill";
}

/// rowmill with these arguments on `ranks` ranks; 0: alone, without mpirun.
inline Outcome rowmill(std::vector<std::string> arguments, int ranks = 0, double deadline = 60,
                       std::function<void(pid_t)> meanwhile = {}) {
  Command command;
  if (ranks > 0) command.words = {"mpirun", "-q", "--oversubscribe", "-n", std::to_string(ranks)};
  command.words.push_back(program());
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  command.environment = mpi_environment();
  command.deadline = deadline;
  command.meanwhile = std::move(meanwhile);
  return run_program(command);
}

}  // namespace rowmill::test
