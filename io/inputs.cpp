#include "io/inputs.hpp"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "core/error.hpp"
#include "io/open.hpp"

namespace rowmill {

namespace {

/// A plan is made by a process of its own; more at a time would only wait for the file system.
constexpr std::size_t kMostAtOnce = 8;

bool is_pattern(const std::string& path) {
  struct stat status = {};
  return path.find_first_of("*?[") != std::string::npos && ::lstat(path.c_str(), &status) != 0;
}

std::vector<std::string> files_matching(const std::string& pattern) {
  glob_t found = {};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> freed(&found, ::globfree);
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (result == GLOB_NOSPACE) throw Error(ExitCode::failed, pattern + ": matches more files than memory holds");
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  if (paths.empty()) throw Error(ExitCode::usage, pattern + ": matches no file: look at the names, and at the folder");
  // by bytes, as in the C locale, so that the order of rows does not depend on the user's language
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<NamedInput> expand_inputs(const std::vector<std::string>& inputs) {
  std::vector<NamedInput> result;
  for (const std::string& input : inputs) {
    const auto [path, dataset] = split_input(input);
    if (!is_pattern(path)) {
      result.push_back({path, dataset});
      continue;
    }
    for (const std::string& match : files_matching(path)) result.push_back({match, dataset});
  }
  if (result.empty()) throw Error(ExitCode::usage, "no input is named");
  return result;
}

std::vector<InputPlan> plan_each(const std::vector<NamedInput>& inputs,
                                 const std::function<InputPlan(const NamedInput&)>& plan_one) {
  std::vector<InputPlan> plans(inputs.size());
  std::atomic<std::size_t> next = 0, end = inputs.size();
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (std::size_t i = next++; i < end; i = next++) {
      try {
        plans[i] = plan_one(inputs[i]);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (i < end) end = i, error = std::current_exception();
      }
    }
  };
  const std::size_t threads =
      std::min({kMostAtOnce, std::max<std::size_t>(1, std::thread::hardware_concurrency()), inputs.size()});
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();
  if (error) std::rethrow_exception(error);
  return plans;
}

}  // namespace rowmill
