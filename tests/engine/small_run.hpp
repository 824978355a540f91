#pragma once
// A run made of the engine's own parts (lanes, pipeline, combine) with backend, communicators and source given by hand.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "engine/combine.hpp"
#include "engine/lanes.hpp"
#include "jobs/job.hpp"
#include "pipeline/block_pipeline.hpp"
#include "tests/comm/probe.hpp"

namespace rowmill::test {

struct SmallRun {
  Backend& backend;
  Communicator& ranks;  ///< all but the sums
  Communicator& bulk;   ///< the sums
  Source& source;
  std::string job = "cov";
  std::int64_t block_rows = 100;
  int lanes = 2, slots = 4;
  std::function<void()> watch = {};  ///< besides polling

  JobOptions options() const {
    JobOptions chosen;
    chosen.missing = job == "stats" ? Missing::skip : Missing::error;
    chosen.block_rows = block_rows;
    return chosen;
  }
  JobInput input() const { return {source.info().rows, source.info().columns, source.info().type}; }
};

/// Bytes that a lane of this run takes.
inline std::size_t lane_bytes(const SmallRun& run) {
  const auto ops = make_host_ops(run.backend);
  return Lanes::extended(make_job(run.job, run.input(), run.options())->layout(*ops)).total_bytes();
}

/// Collective over run.ranks. The result, on rank 0. Throws what went wrong on this rank, or PeerFailed.
inline ResultSink mill(const SmallRun& run) {
  const auto ops = make_host_ops(run.backend);
  const auto job = make_job(run.job, run.input(), run.options());
  const BlockGrid grid({0, run.source.info().rows}, run.block_rows);
  const Shard shard = contiguous_shard(grid, run.ranks.rank(), run.ranks.size());
  const SourceSet sources{&run.source, nullptr, nullptr};
  Lanes lanes(Lanes::extended(job->layout(*ops)), run.backend, *ops,
              {.count = run.lanes, .refuse_missing = run.job != "stats", .input = "x", .columns = {}});
  bool failed = false;
  const auto broadcast = [&](State& state) {
    std::vector<std::byte> bytes = state.serialise();
    run.ranks.broadcast(bytes, 0);
    state = State::deserialise(bytes);
  };
  State state;
  ResultSink result;
  for (Next next = Next::pass_again; next == Next::pass_again;) {
    BlockPipeline pipeline(sources, grid, shard, run.backend, {.slots = run.slots});
    std::optional<Lease> first;
    if (state.pass == 0 && state.arrays.empty()) {
      if (run.ranks.rank() == 0) {
        first = pipeline.next(lanes.first_queue());
        lanes.pilot(*job, first.value().block(), state);
      }
      broadcast(state);
    }
    job->begin_pass(state);
    lanes.mill(*job, pipeline, std::exchange(first, std::nullopt), [&] {
      const Verdict verdict = run.ranks.poll({Heartbeat::Stage::milling, pipeline.last_block()});
      failed = failed || verdict.failed;
      if (verdict.failed) pipeline.stop_before(verdict.before_row.value_or(0));
      if (run.watch) run.watch();
    });
    if (failed) throw PeerFailed();
    combine_ranks(lanes.merge(), *ops, run.bulk, lanes.first_queue());
    HostPartial partial = lanes.fetch();
    std::vector<std::byte> again(1);
    if (run.ranks.rank() == 0) {
      next = job->finish(partial, state, result);
      again[0] = static_cast<std::byte>(next == Next::pass_again);
    }
    run.ranks.broadcast(again, 0);
    next = again[0] == std::byte{1} ? Next::pass_again : Next::done;
    broadcast(state);
  }
  return result;
}

}  // namespace rowmill::test
