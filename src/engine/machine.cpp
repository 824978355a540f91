#include "engine/machine.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace rowmill {

namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// The first number in a file, or `fallback` ("max" and missing files included).
std::int64_t number_in(const std::string& path, std::int64_t fallback) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : fallback;
}

/// Folder of this process's cgroup (version 2), or empty.
std::string cgroup_folder() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return "/sys/fs/cgroup" + line.substr(3);
  }
  return {};
}

/// Calls visit(folder) for the cgroup and each of its parents.
template <typename Visit>
void for_each_cgroup(Visit visit) {
  std::string folder = cgroup_folder();
  while (folder.size() > std::string("/sys/fs").size()) {
    visit(folder);
    folder.erase(folder.find_last_of('/'));
  }
}

std::int64_t peak_memory_in(const std::string& status) {
  std::ifstream file(status);
  for (std::string key; file >> key;) {
    std::int64_t kib = 0;
    if (key == "VmHWM:" && file >> kib) return kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int processors = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) processors = std::max(1, CPU_COUNT(&set));
  for_each_cgroup([&](const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period && quota > 0 && period > 0) {
      processors = std::clamp(static_cast<int>(std::ceil(quota / period)), 1, processors);
    }
  });
  return processors;
}

std::int64_t available_memory() {
  std::int64_t available = unlimited;
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    if (key == "MemAvailable:") {
      std::int64_t kib = 0;
      file >> kib;
      available = kib * 1024;
      break;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  for_each_cgroup([&](const std::string& folder) {
    const std::int64_t limit = number_in(folder + "/memory.max", unlimited);
    if (limit == unlimited) return;
    const std::int64_t used = number_in(folder + "/memory.current", 0);
    available = std::min(available, std::max<std::int64_t>(0, limit - used));
  });
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited);
  if (limit < (std::int64_t{1} << 60)) {
    const std::int64_t used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", 0);
    available = std::min(available, std::max<std::int64_t>(0, limit - used));
  }
  return available == unlimited ? std::int64_t{4} << 30 : available;
}

std::int64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_memory() {
  // the kernel's own count for getrusage outlives exec: it would be the launcher's where that was larger
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

std::int64_t peak_memory_of_children(const std::string& program) {
  // not from getrusage: it tells of those that have ended, and counts what their parent held when it started them
  std::int64_t most = 0;
  std::error_code unknown;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", unknown)) {
    std::ifstream children(thread.path() / "children");
    for (std::string child; children >> child;) {
      std::string name;
      std::getline(std::ifstream("/proc/" + child + "/comm") >> std::ws, name);
      if (name == program.substr(0, 15)) most = std::max(most, peak_memory_in("/proc/" + child + "/status"));
    }
  }
  return most;
}

}  // namespace rowmill
