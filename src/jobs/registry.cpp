// The one list of jobs. A new job: one file, one line in each of the two places here.
#include "core/error.hpp"
#include "jobs/job.hpp"

namespace rowmill {

JobTraits stats_job();
JobTraits gram_job();
JobTraits cov_job();

const std::vector<JobTraits>& all_jobs() {
  static const std::vector<JobTraits> jobs = {
      stats_job(),
      gram_job(),
      cov_job(),
  };
  return jobs;
}

const JobTraits& traits_of(const std::string& name) {
  for (const JobTraits& job : all_jobs()) {
    if (name == job.name) return job;
  }
  throw Error(ExitCode::usage, "there is no job '" + name + "'");
}

std::unique_ptr<Job> make_job(const std::string& name, const JobInput& input, const JobOptions& options) {
  return traits_of(name).make(input, options);
}

BlockPreference block_preference(const std::string& name) {
  return traits_of(name).blocks;
}

std::vector<std::string> job_names() {
  std::vector<std::string> names;
  for (const JobTraits& job : all_jobs()) names.push_back(job.name);
  return names;
}

}  // namespace rowmill
