#pragma once
// What tests of misbehaving ranks look at: the lines that were said, and processes that were left behind.
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace rowmill::testing {

/// "cmdline" or "environ" of a process. Empty for what is no process, or is one no more: reading of one that ends
/// meanwhile fails.
inline std::string text_of(const std::string& process, const char* what) {
  try {
    std::ifstream file("/proc/" + process + "/" + what, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  } catch (const std::ios_base::failure&) {
    return {};
  }
}

/// Processes that this test launched and whose command line holds `mark`, zombies aside.
inline int processes_with(const std::string& mark) {
  const std::string mine = "ROWMILL_TEST_RUN=" + std::to_string(::getpid()) + '\0';
  int found = 0;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return 0;
  while (const dirent* entry = ::readdir(proc)) {
    if (text_of(entry->d_name, "cmdline").find(mark) == std::string::npos) continue;
    if (text_of(entry->d_name, "environ").find(mine) != std::string::npos) ++found;
  }
  ::closedir(proc);
  return found;
}

/// The same, once they have had the time to go.
inline int left_of(const std::string& mark) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (processes_with(mark) > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return processes_with(mark);
}

/// No rank of `program SCENARIO …` is left.
inline void expect_none_left(const std::string& program, const std::string& scenario) {
  EXPECT_EQ(left_of(program + '\0' + scenario + '\0'), 0) << "ranks were left behind";
}

/// Launchers may have something to say too.
inline std::vector<std::string> lines_of_ours(const std::string& errors) {
  std::vector<std::string> lines;
  std::istringstream stream(errors);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("rowmill", 0) == 0) lines.push_back(line);
  }
  return lines;
}

}  // namespace rowmill::testing
