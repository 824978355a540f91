// cov: the covariance matrix, with means and standard deviations.
#include <algorithm>
#include <cmath>
#include <limits>

#include "jobs/cross.hpp"
#include "jobs/job.hpp"
#include "jobs/moments.hpp"

namespace rowmill {

namespace {

class CovJob final : public Job {
 public:
  CovJob(const JobInput& input, const JobOptions& options) : input_(input), options_(options) {}

  PartialLayout layout(const Ops& ops) const override {
    PartialLayout layout;
    add_moments(layout, input_.columns);
    if (by_entries()) {
      add_sparse_cross(layout, input_, options_, ops);
    } else {
      add_cross(layout, input_, options_.precision, ops);
    }
    return layout;
  }

  void pilot(const Block& block, PartialView lane, State& state, Ops& ops, Queue queue) override {
    choose_shift(block, lane, state, ops, queue);
    prepare_moments(lane, state, ops, queue);
    state.arrays["measured_error"] = {
        measure_error(block, column_map(lane), options_.precision, input_, lane, ops, queue)};
  }

  void begin_pass(const State& state) override { state_ = state; }

  void prepare(PartialView lane, Ops& ops, Queue queue) const override { prepare_moments(lane, state_, ops, queue); }

  void accumulate(const Block& block, PartialView lane, Ops& ops, Queue queue) const override {
    accumulate_moments(block, lane, ops, queue);
    if (by_entries()) return accumulate_sparse_cross(block, lane, ops, queue);
    accumulate_cross(block, column_map(lane), options_.precision, lane, ops, queue);
  }

  const double* block_product(PartialView lane) const override {
    return by_entries() ? nullptr : lane.f64("block_product");
  }

  Next finish(HostPartial& global, State& state, ResultSink& sink) override {
    Moments m = finish_moments(global, state, options_.ddof);
    if (improve_shift(m, spread_limit(), state)) return Next::pass_again;
    const std::int64_t columns = input_.columns;
    std::vector<double> deviation(static_cast<std::size_t>(columns));
    std::vector<double> covariance = centred(global.sums("product"), m, state, deviation);
    const double stored_error = global.integers("inexact").at(0) > 0 ? rounding_of_integers(m, deviation) : 0;
    for (std::size_t j = 0; j < m.missing.size(); ++j) {
      if (m.missing[j] > 0) m.mean[j] = std::numeric_limits<double>::quiet_NaN();
    }
    sink.add("covariance", {columns, columns}, std::move(covariance));
    sink.add("mean", {columns}, m.mean);
    sink.add("std", {columns}, std::move(deviation));
    sink.attribute("precision", name_of(options_.precision));
    sink.attribute("precision_bound", cross_bound(input_, options_, true) * (1 + m.worst_spread) + stored_error);
    sink.attribute("precision_measured_error", state.arrays.at("measured_error").at(0));
    return Next::done;
  }

 private:
  /// Sparse rows have no shift in the first pass. A shift makes them dense: a second pass goes by tiles.
  bool by_entries() const { return options_.by_entries && state_.pass == 0; }

  /// δ²/σ² above which a second pass with the known means is made: bounds grow by 1 + δ²/σ².
  double spread_limit() const { return options_.precision == Precision::fp64 ? 1e4 : 9; }

  /// What rounding integers beyond 2^53 to fp64 may add to the bound. Each value's error is at most u |x|, so that by
  /// Cauchy and Schwarz |ΔC_ij| ≤ (η_i + η_j + η_i η_j) σ_i σ_j with η = u sqrt(mean² + σ²) / σ, u = 2^-53.
  static double rounding_of_integers(const Moments& m, const std::vector<double>& deviation) {
    double worst = 0;
    for (std::size_t j = 0; j < deviation.size(); ++j) {
      worst = std::max(worst, 0x1p-53 * std::hypot(m.mean[j], deviation[j]) / deviation[j]);
    }
    return worst * (2 + worst);
  }

  /// (P - n δ δᵀ) / (n - ddof), both triangles, in the units of the input; constant columns are exactly zero. The roots
  /// of its diagonal are taken before the scale is undone: they may fit in a double where variances do not.
  std::vector<double> centred(const std::vector<double>& packed, const Moments& m, const State& state,
                              std::vector<double>& deviation) const {
    const std::int64_t columns = input_.columns;
    const auto& scale = state.arrays.at("scale");
    const auto n = static_cast<long double>(input_.rows);
    const auto free = static_cast<long double>(input_.rows - options_.ddof);
    std::vector<double> covariance(static_cast<std::size_t>(columns * columns));
    for (std::size_t i = 0, at = 0; i < static_cast<std::size_t>(columns); ++i) {
      for (std::size_t j = 0; j <= i; ++j, ++at) {
        long double value = packed[at] - n * m.delta[i] * m.delta[j];
        if (i == j) value = std::isnan(value) ? value : std::max(value, 0.0L);
        if ((m.constant[i] || m.constant[j]) && std::isfinite(packed[at])) value = 0;
        if (i == j) deviation[i] = static_cast<double>(std::sqrt(value / free) / scale[i]);
        const auto entry = static_cast<double>(value / free / scale[i] / scale[j]);
        covariance[i * static_cast<std::size_t>(columns) + j] = covariance[j * static_cast<std::size_t>(columns) + i] =
            entry;
      }
    }
    return covariance;
  }

  JobInput input_;
  JobOptions options_;
  State state_;
};

std::unique_ptr<Job> make(const JobInput& input, const JobOptions& options) {
  return std::make_unique<CovJob>(input, options);
}

}  // namespace

JobTraits cov_job() {
  return {.name = "cov",
          .gives = "the covariance matrix, with means and standard deviations",
          .blocks = {8 << 20, 2048},
          .has_ddof = true,
          .has_precision = true,
          .shifts = true,
          .shown = {{"mean"}, {"std"}, {"covariance"}},
          .make = make};
}

}  // namespace rowmill
