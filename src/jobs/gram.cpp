// gram: XᵀX.
#include "jobs/cross.hpp"
#include "jobs/job.hpp"

namespace rowmill {

namespace {

class GramJob final : public Job {
 public:
  GramJob(const JobInput& input, const JobOptions& options) : input_(input), options_(options) {}

  PartialLayout layout(const Ops& ops) const override {
    PartialLayout layout;
    if (options_.by_entries) {
      add_sparse_cross(layout, input_, options_, ops);
    } else {
      add_cross(layout, input_, options_.precision, ops);
    }
    return layout;
  }

  void pilot(const Block& block, PartialView lane, State& state, Ops& ops, Queue queue) override {
    if (options_.by_entries) {
      state.arrays["measured_error"] = {0.0};
      return;
    }
    state.arrays["measured_error"] = {measure_error(block, {}, options_.precision, input_, lane, ops, queue)};
  }

  void begin_pass(const State&) override {}
  void prepare(PartialView, Ops&, Queue) const override {}

  void accumulate(const Block& block, PartialView lane, Ops& ops, Queue queue) const override {
    if (options_.by_entries) return accumulate_sparse_cross(block, lane, ops, queue);
    accumulate_cross(block, {}, options_.precision, lane, ops, queue);
  }

  const double* block_product(PartialView lane) const override {
    return options_.by_entries ? nullptr : lane.f64("block_product");
  }

  Next finish(HostPartial& global, State& state, ResultSink& sink) override {
    const std::vector<double> packed = global.sums("product");
    const std::int64_t columns = input_.columns;
    std::vector<double> gram(static_cast<std::size_t>(columns * columns));
    for (std::int64_t i = 0, at = 0; i < columns; ++i) {
      for (std::int64_t j = 0; j <= i; ++j, ++at) {
        const double value = packed[static_cast<std::size_t>(at)];
        gram[static_cast<std::size_t>(i * columns + j)] = gram[static_cast<std::size_t>(j * columns + i)] = value;
      }
    }
    sink.add("gram", {columns, columns}, std::move(gram));
    sink.attribute("precision", name_of(options_.precision));
    sink.attribute("precision_bound", cross_bound(input_, options_, false));
    sink.attribute("precision_measured_error", state.arrays.at("measured_error").at(0));
    return Next::done;
  }

 private:
  JobInput input_;
  JobOptions options_;
};

std::unique_ptr<Job> make(const JobInput& input, const JobOptions& options) {
  return std::make_unique<GramJob>(input, options);
}

}  // namespace

JobTraits gram_job() {
  return {.name = "gram", .gives = "the products XᵀX", .blocks = {8 << 20, 2048}, .has_precision = true, .make = make};
}

}  // namespace rowmill
