#include "engine/run.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "comm/call_watch.hpp"
#include "comm/device_patience.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"
#include "engine/combine.hpp"
#include "engine/device.hpp"
#include "engine/lanes.hpp"
#include "engine/machine.hpp"
#include "engine/progress.hpp"
#include "engine/report.hpp"
#include "engine/watch.hpp"
#include "io/inputs.hpp"
#include "io/mpiio/mpi_thread.hpp"
#include "io/open.hpp"
#include "io/result_writer.hpp"

namespace rowmill {

namespace {

using Stage = Heartbeat::Stage;

class Run {
 public:
  Run(const RunOptions& options, World& world, const CudaProber& probe)
      : options_(options), world_(world), ranks_(world.communicator()), probe_(probe) {
    report_.started = now_utc();
    if (options_.io == "direct") return;
    const bool collective = options_.io == "mpiio-collective";
    mpi_ = std::make_unique<MpiThread>(collective ? MpiThread::Mode::collective : MpiThread::Mode::independent,
                                       [this] { leave_the_failed(); });
    mpi_->guard_rounds([this] {
      return std::make_shared<CallWatch>(options_.timeout, "a read of all ranks together by MPI-IO has not ended",
                                         "a rank is stopped, or the file system does not answer");
    });
    look_ = [this] { look(); };
  }

  /// The whole flow. Throws what went wrong on this rank, or PeerFailed.
  RunReport all() {
    try {
      return flow();
    } catch (...) {
      leave_reading(std::current_exception());
      throw;
    }
  }

 private:
  RunReport flow() {
    open_source();
    make_plan();
    State state = look_at_first_block();
    Next next = Next::pass_again;
    for (; next == Next::pass_again; ++report_.passes) {
      if (mpi_) mpi_->begin_pass();
      job_->begin_pass(state);
      if (state.pass > 0) fit_lanes();
      mill_my_shard(state.pass);
      combine();
      HostPartial partial = on_device({Stage::combining}, [&] { return lanes_->fetch(); });
      next = finish(partial, state);
    }
    --report_.passes;
    collect_figures();
    if (ranks_.rank() == 0) write();
    return std::move(report_);
  }

  void open_source() {
    InputRequest request;
    request.inputs = options_.inputs;
    request.format = options_.format;
    request.row_axis = options_.row_axis;
    if (options_.timeout.count() > 0) request.time_limit = std::min(request.time_limit, options_.timeout);
    request.mpi = mpi_.get();
    std::vector<std::byte> plan;
    if (ranks_.rank() == 0) {
      if (!options_.output.empty()) check_output_is_no_input();
      plan = with_heartbeats(ranks_, {Stage::planning}, [&] { return plan_input(request); });
    }
    ranks_.broadcast(plan, 0);
    source_ = with_heartbeats(
        ranks_, {Stage::planning}, [&] { return make_source(plan, request); }, look_);
    if (options_.columns.empty()) return;
    report_.chosen_columns = chosen_columns(options_, source_->info());
    source_ = select_columns(std::move(source_), report_.chosen_columns);
  }

  void check_output_is_no_input() {
    for (const NamedInput& input : expand_inputs(options_.inputs)) {
      check_output(options_.output, options_.overwrite, input.path);
    }
  }

  void make_plan() {
    const SourceInfo& info = source_->info();
    const RowRange rows = chosen_rows(options_, info);
    take_device();
    BlockPreference preference = preference_on(device_.backend->name(), block_preference(options_.job));
    if (multiplies_by_entries(options_.precision, info, *device_.ops)) preference = preference_by_entries(preference);
    report_.block_rows = choose_block_rows(preference, info, options_.block_rows);
    grid_ = BlockGrid(rows, report_.block_rows);
    prepare_source();

    job_options_ = chosen_job_options(options_, info, report_.block_rows, *device_.ops);
    report_.input = {rows.count, info.columns, info.type};
    job_ = make_job(options_.job, report_.input, job_options_);

    sources_ = {source_.get(), nullptr, nullptr};
    shard_ = contiguous_shard(grid_, ranks_.rank(), ranks_.size());
    program_bytes_ = resident_memory();
    make_lanes(Lanes::extended(job_->layout(*device_.ops)));
  }

  /// A later pass may take other scratch than the first.
  void fit_lanes() {
    PartialLayout layout = Lanes::extended(job_->layout(*device_.ops));
    if (layout == lanes_->layout()) return;
    pipeline_.reset();
    lanes_.reset();
    device_.backend->trim();
    make_lanes(std::move(layout));
  }

  void make_lanes(PartialLayout layout) {
    const SourceInfo& info = source_->info();
    const auto slot_bytes = static_cast<std::int64_t>(BlockPipeline::slot_bytes(sources_, grid_));
    report_.memory = plan_for_device(layout, slot_bytes);
    lanes_ = std::make_unique<Lanes>(
        std::move(layout), *device_.backend, *device_.ops,
        Lanes::Options{report_.memory.lanes, job_options_.missing == Missing::error,
                       is_integer(info.type.dtype) && size_of(info.type) == 8, info.name(), report_.chosen_columns,
                       info.format.find("netcdf") != std::string::npos ? "NaN or a fill value" : "NaN",
                       traits_of(options_.job).missing == Missing::skip
                           ? "leave out --missing, and " + options_.job + " skips it"
                           : "use --missing propagate, or `stats`, which skips it",
                       [this](std::int64_t row) { return place_of_row(source_->info(), row); }});
    spdlog::debug("{} blocks of {} rows, {} of them here; {} lanes, {} slots of {} bytes", grid_.count(),
                  grid_.block_rows(), shard_.size(), report_.memory.lanes, report_.memory.slots, slot_bytes);
    // while nothing is summed yet: kernels that are loaded later may wait for a collective that waits for them
    const BlockShape shape{info.type, std::min(report_.block_rows, grid_.rows().count), info.columns,
                           job_options_.precision, job_options_.chain_rows};
    on_device({Stage::planning}, [&] { lanes_->prepare(*job_, shape); });
  }

  void prepare_source() {
    const int ranks_here = world_.local_size(), processors = processors_of_rank(ranks_here);
    const RowRange rows = contiguous_rows(grid_, ranks_.rank(), ranks_.size());
    // half of the memory stays for blocks and sums
    source_->prepare({.grid = grid_,
                      .rows = rows,
                      .memory_bytes = memory_of_rank(options_.memory, ranks_here) / 2,
                      .readers = 2 * processors,
                      .scratch = options_.scratch});
  }

  void take_device() {
    const DeviceWish wish{options_.backend, options_.comm, options_.device_memory, options_.timeout};
    device_ = choose_device(wish, world_, probe_);
    if (!device_.backend->unified()) look_ = [this] { look(); };
    if (ranks_.rank() != 0) return;
    if (!device_.warning.empty()) warn(device_.warning);
    if (options_.quiet) return;
    if (!device_.why_host.empty()) spdlog::info("milled on the host: {}", device_.why_host);
    if (!device_.backend->unified() && device_.comm(world_) == "mpi") {
      spdlog::info("sums travel by MPI, {}",
                   ranks_.reduces_on_device() ? "which is given device memory" : "through staging memory");
    }
  }

  /// What the main thread does again and again while others work.
  void look() {
    try {
      if (mpi_) mpi_->serve(std::chrono::milliseconds(1));
      if (device_.backend && !device_.backend->unified()) look_at_device();
    } catch (...) {
      if (mpi_) mpi_->close();  // whoever joins the threads that read would wait for ever
      throw;
    }
  }

  void leave_the_failed() {
    if (ranks_.poll({Stage::planning}).failed) throw PeerFailed();
  }

  /// Before anything is destroyed: threads may still ask for rows, and other ranks for this one's part in reading.
  void leave_reading(const std::exception_ptr& failure) {
    if (!mpi_) return;
    try {
      std::rethrow_exception(failure);
    } catch (const PeerFailed&) {
    } catch (...) {
      ranks_.announce(describe_failure(failure));
    }
    mpi_->leave([this] { ranks_.poll({Stage::finishing}); });
  }

  /// Does a device that is no host still work?
  void look_at_device() {
    check_patience(ranks_, device_.ops->device_name(), device_.backend->longest_wait(), options_.timeout);
  }

  /// Work that waits for the device.
  template <typename Work>
  std::invoke_result_t<Work> on_device(const Heartbeat& heartbeat, Work work) {
    return with_heartbeats(ranks_, heartbeat, std::move(work), look_);
  }

  MemoryPlan plan_for_device(const PartialLayout& layout, std::int64_t slot_bytes) const {
    const MemoryWish wish{options_.memory,
                          world_.local_size(),
                          options_.threads,
                          options_.prefetch,
                          options_.io_threads,
                          source_->info().reader_bytes,
                          source_->info().shared_bytes,
                          source_->info().read_elsewhere,
                          program_bytes_,
                          dense_bytes_of(source_->info())};
    const std::int64_t blocks = contiguous_count(grid_, ranks_.rank(), ranks_.size());
    const Backend& backend = *device_.backend;
    if (backend.unified()) return plan_memory(wish, layout, slot_bytes, blocks);
    // a queue's libraries have 32 MiB of workspace, and some kernels a little scratch
    const std::int64_t queue_bytes = backend.name() == "cuda" ? 40 << 20 : 0;
    return plan_device_memory(wish, {backend.device_memory().limit, queue_bytes}, layout, slot_bytes, blocks);
  }

  /// Rank 0 looks at the first milled block, so that all ranks subtract the same shift, and keeps its lease: the block
  /// is milled later without being read again.
  State look_at_first_block() {
    std::vector<std::byte> bytes;
    if (ranks_.rank() == 0) {
      start_reading();
      bytes = on_device({Stage::planning, grid_.first_id()}, [&] {
        State state;
        first_ = pipeline_->next(lanes_->first_queue());
        lanes_->pilot(*job_, first_.value().block(), state);
        return state.serialise();
      });
    }
    ranks_.broadcast(bytes, 0);
    return State::deserialise(bytes);
  }

  void start_reading() {
    first_.reset();
    pipeline_.reset();
    pipeline_ = std::make_unique<BlockPipeline>(
        sources_, grid_, shard_, *device_.backend,
        PipelineOptions{.slots = report_.memory.slots,
                        .io_threads = report_.memory.io_threads,
                        .consumers_read = report_.memory.lanes_read,
                        .cores = std::max(1, usable_processors() / world_.local_size())});
  }

  void mill_my_shard(int pass) {
    if (!first_) start_reading();
    BlockPipeline& pipeline = *pipeline_;
    const ProgressStyle style = ranks_.rank() == 0 ? progress_style(options_.progress) : ProgressStyle::none;
    Progress progress(style, pass, static_cast<std::int64_t>(shard_.size()), report_.memory.slot_bytes);
    bool failed = false, stopped = false;
    const auto watch = [&] {
      const std::int64_t block = pipeline.last_block();
      const Verdict verdict = ranks_.poll({Stage::milling, block});
      failed = failed || verdict.failed;
      stopped = stopped || verdict.stop;
      if (verdict.failed) pipeline.stop_before(verdict.before_row.value_or(0));
      if (verdict.stop) pipeline.stop_before(0);
      if (look_) look_();
      progress.update(pipeline.stats().blocks);
    };
    mill_by(watch);
    if (failed) throw PeerFailed();
    if (stopped) throw Error(ExitCode::failed, "stopped on request");
    source_->check_unchanged();
    report_.pipeline = pipeline.stats();
  }

  void mill_by(const std::function<void()>& watch) {
    try {
      lanes_->mill(*job_, *pipeline_, std::exchange(first_, std::nullopt), watch);
    } catch (const Error& error) {
      if (mpi_ && mpi_->was_left()) throw PeerFailed();
      // ranks with earlier rows go on, and where reading is collective not without this one
      if (mpi_ && error.row()) {
        ranks_.announce(describe_failure(std::current_exception()));
        mpi_->end_pass(watch);
      }
      throw;
    }
    if (mpi_) mpi_->end_pass(watch);
  }

  void combine() {
    const NamedRange range(*device_.backend, "combine");
    combine_ranks(lanes_->merge(), *device_.ops, device_.bulk(ranks_), lanes_->first_queue());
  }

  /// Rank 0 finishes; all hear whether another pass follows, and with what.
  Next finish(HostPartial& partial, State& state) {
    std::vector<std::byte> bytes;
    if (ranks_.rank() == 0) {
      if (partial.integers("inexact").at(0) > 0) {
        warn(source_->info().name() + ": integers beyond 2^53 were rounded to the nearest float64");
      }
      bytes = with_heartbeats(ranks_, {Stage::finishing}, [&] {
        const Next next = job_->finish(partial, state, report_.result);
        std::vector<std::byte> all = state.serialise();
        all.push_back(next == Next::pass_again ? std::byte{1} : std::byte{0});
        return all;
      });
    }
    ranks_.broadcast(bytes, 0);
    const Next next = bytes.back() == std::byte{1} ? Next::pass_again : Next::done;
    bytes.pop_back();
    state = State::deserialise(bytes);
    return next;
  }

  /// Figures of all ranks on rank 0, for the result's attributes and the report.
  void collect_figures() {
    const Backend& backend = *device_.backend;
    const RankFigures mine{source_->bytes_read(), device_.ops->device_name(), backend.staging_memory(),
                           backend.device_memory()};
    const auto all = ranks_.gather(mine.serialise());
    if (ranks_.rank() != 0) return;
    for (const std::string& warning : source_->info().warnings) warn(warning);
    report_.source = source_->info();
    report_.blocks = grid_.count();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    report_.backend = backend.name();
    report_.comm = device_.comm(world_);
    add_figures(all, report_);
    add_attributes(options_, job_options_, world_, all, report_);
    if (options_.quiet) return;
    spdlog::info("staging memory: {} now, {} at most in a rank; device memory: {} now, {} at most",
                 format_size(report_.staging.current), format_size(report_.staging.high_water),
                 format_size(report_.device.current), format_size(report_.device.high_water));
  }

  void write() {
    if (options_.output.empty()) return;
    with_heartbeats(ranks_, {Stage::writing}, [&] {
      write_result(options_.output, report_.result, report_.source.column_names, options_.overwrite);
    });
    report_.peak_memory = std::max(report_.peak_memory, peak_resident_memory());
    if (const std::string warning = output_warning(options_.output); !warning.empty()) warn(warning);
  }

  void warn(const std::string& text) {
    if (std::find(report_.warnings.begin(), report_.warnings.end(), text) != report_.warnings.end()) return;
    report_.warnings.push_back(text);
    if (!options_.quiet) spdlog::warn(printable(text));
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const RunOptions& options_;
  World& world_;
  Communicator& ranks_;
  const CudaProber& probe_;
  RunReport report_;
  std::unique_ptr<MpiThread> mpi_;  ///< null where files are read directly
  std::unique_ptr<Source> source_;
  SourceSet sources_;
  BlockGrid grid_;
  std::int64_t program_bytes_ = 0;  ///< resident before lanes and slots were made
  Shard shard_;
  JobOptions job_options_;
  Device device_;
  std::function<void()> look_;  ///< empty where there is nothing to look at
  std::unique_ptr<Job> job_;
  std::unique_ptr<Lanes> lanes_;
  std::unique_ptr<BlockPipeline> pipeline_;
  std::optional<Lease> first_;  ///< rank 0, between the look at the first block and the first pass
};

}  // namespace

RunReport run(const RunOptions& options, World& world, const CudaProber& probe) {
  Communicator& ranks = world.communicator();
  RunReport report;
  std::optional<Failure> mine;
  try {
    Run whole(options, world, probe);
    report = whole.all();
  } catch (const PeerFailed&) {
  } catch (...) {
    mine = describe_failure(std::current_exception());
    ranks.announce(*mine);
  }
  const Agreement agreement = ranks.agree(mine, {Stage::finishing});
  if (!agreement.ok) {
    report = RunReport{};
    report.exit_code = agreement.code;
    if (agreement.rank == ranks.rank()) report.error = agreement.message;
  }
  return report;
}

}  // namespace rowmill
