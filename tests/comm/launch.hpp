#pragma once
// Starts programs under mpirun from a test, with a guard against hangs.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace rowmill::testing {

struct Launched {
  int code = -1;       ///< 128 + signal if mpirun itself died by one
  bool ended = false;  ///< false: killed after the limit
  std::string output, errors;
};

/// A file that goes away with its owner.
class TemporaryFile {
 public:
  TemporaryFile() : descriptor_(::mkstemp(path_)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    ::close(descriptor_);
    ::unlink(path_);
  }
  int descriptor() const { return descriptor_; }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  char path_[32] = "/tmp/rowmill_test_XXXXXX";
  int descriptor_;
};

inline void wait_for(pid_t child, std::chrono::seconds limit, Launched& launched) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (std::chrono::steady_clock::now() < deadline) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      launched.ended = true;
      launched.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(child, SIGTERM);  // mpirun takes its ranks along
  ::waitpid(child, &status, 0);
}

inline Launched launch(int ranks, const std::vector<std::string>& launcher_options,
                       const std::vector<std::string>& program, std::chrono::seconds limit = std::chrono::seconds(60)) {
  std::vector<std::string> words{"mpirun", "-q", "--oversubscribe", "-n", std::to_string(ranks)};
  words.insert(words.end(), launcher_options.begin(), launcher_options.end());
  words.insert(words.end(), program.begin(), program.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const TemporaryFile output, errors;
  const std::string test = std::to_string(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("ROWMILL_TEST_RUN", test.c_str(), 1);  // tells its processes from those of tests beside
    ::dup2(output.descriptor(), STDOUT_FILENO);
    ::dup2(errors.descriptor(), STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  Launched launched;
  wait_for(child, limit, launched);
  launched.output = output.text();
  launched.errors = errors.text();
  return launched;
}

}  // namespace rowmill::testing
