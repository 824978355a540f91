#include "jobs/job.hpp"
