// The one list of jobs. A new job: one file, one line in each of the two places here.
#include "core/error.hpp"
#include "jobs/job.hpp"

namespace rowmill {

std::unique_ptr<Job> make_stats_job(const JobInput&, const JobOptions&);
std::unique_ptr<Job> make_gram_job(const JobInput&, const JobOptions&);
std::unique_ptr<Job> make_cov_job(const JobInput&, const JobOptions&);

namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Job> (*make)(const JobInput&, const JobOptions&);
  BlockPreference blocks;
};

constexpr Entry jobs[] = {
    {"stats", make_stats_job, {1 << 20, 256}},
    {"gram", make_gram_job, {8 << 20, 2048}},
    {"cov", make_cov_job, {8 << 20, 2048}},
};

const Entry& entry_of(const std::string& name) {
  for (const Entry& entry : jobs) {
    if (name == entry.name) return entry;
  }
  throw Error(ExitCode::usage, "there is no job '" + name + "'");
}

}  // namespace

std::unique_ptr<Job> make_job(const std::string& name, const JobInput& input, const JobOptions& options) {
  return entry_of(name).make(input, options);
}

BlockPreference block_preference(const std::string& name) {
  return entry_of(name).blocks;
}

std::vector<std::string> job_names() {
  std::vector<std::string> names;
  for (const Entry& entry : jobs) names.emplace_back(entry.name);
  return names;
}

}  // namespace rowmill
