// stats: count, missing, sum, mean, variance, std, min and max of each column, in fp64 throughout.
#include <limits>

#include "jobs/cross.hpp"
#include "jobs/job.hpp"
#include "jobs/moments.hpp"

namespace rowmill {

namespace {

/// δ²/σ² above which a second pass is made: the relative error of a variance grows by 1 + δ²/σ².
constexpr double spread_limit = 1e4;

class StatsJob final : public Job {
 public:
  StatsJob(const JobInput& input, const JobOptions& options) : input_(input), options_(options) {}

  PartialLayout layout(const Ops&) const override {
    PartialLayout layout;
    add_moments(layout, input_.columns);
    return layout;
  }

  void pilot(const Block& block, PartialView lane, State& state, Ops& ops, Queue queue) override {
    choose_shift(block, lane, state, ops, queue);
  }

  void begin_pass(const State& state) override { state_ = state; }

  void prepare(PartialView lane, Ops& ops, Queue queue) const override { prepare_moments(lane, state_, ops, queue); }

  void accumulate(const Block& block, PartialView lane, Ops& ops, Queue queue) const override {
    accumulate_moments(block, lane, ops, queue);
  }

  Next finish(HostPartial& global, State& state, ResultSink& sink) override {
    Moments m = finish_moments(global, state, options_.ddof);
    if (improve_shift(m, spread_limit, state)) return Next::pass_again;
    if (options_.missing == Missing::propagate) {
      for (std::size_t j = 0; j < m.missing.size(); ++j) {
        if (m.missing[j] == 0) continue;
        for (auto* v : {&m.sum, &m.mean, &m.variance, &m.deviation, &m.min, &m.max}) {
          (*v)[j] = std::numeric_limits<double>::quiet_NaN();
        }
      }
    }
    const std::vector<std::int64_t> shape = {input_.columns};
    sink.add("count", shape, {m.count.begin(), m.count.end()});
    sink.add("missing", shape, {m.missing.begin(), m.missing.end()});
    sink.add("sum", shape, m.sum);
    sink.add("mean", shape, m.mean);
    sink.add("variance", shape, m.variance);
    sink.add("std", shape, m.deviation);
    sink.add("min", shape, m.min);
    sink.add("max", shape, m.max);
    sink.attribute("precision", std::string("fp64"));
    // Of a variance: a chain of at most one block of squares in fp64, about a shift that misses the mean by δ.
    sink.attribute("precision_bound", cross_bound(input_, options_, true) * (1 + m.worst_spread));
    sink.attribute("precision_measured_error", 0.0);  // there is nothing more precise that it is measured against
    return Next::done;
  }

 private:
  JobInput input_;
  JobOptions options_;
  State state_;
};

std::unique_ptr<Job> make(const JobInput& input, const JobOptions& options) {
  return std::make_unique<StatsJob>(input, options);
}

}  // namespace

JobTraits stats_job() {
  return {.name = "stats",
          .gives = "count, missing, sum, mean, variance, std, min, max of each column",
          .blocks = {1 << 20, 256},
          .has_ddof = true,
          .shifts = true,
          .missing = Missing::skip,
          .shown = {{"count", true}, {"missing", true}, {"mean"}, {"std"}, {"min"}, {"max"}},
          .make = make};
}

}  // namespace rowmill
