#pragma once
// A job: what is computed. One file a job; registry.cpp is the one list.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/block.hpp"
#include "core/partial.hpp"
#include "core/result.hpp"
#include "kernels/ops.hpp"

namespace rowmill {

enum class Missing : std::uint8_t { error, propagate, skip };

/// The options that jobs look at, as resolved: the same on every rank.
struct JobOptions {
  int ddof = 1;
  Missing missing = Missing::error;
  Precision precision = Precision::fp64;
  std::int64_t chain_rows = slab_rows;  ///< of products in that precision
  int compute_capability = 0;           ///< of the device that products run on
  double rtol = 3e-5;
  std::int64_t block_rows = 0;  ///< rows of a block, as planned
  bool by_entries = false;      ///< products of sparse rows entry by entry, in fp64
};

/// The shape of what is milled.
struct JobInput {
  std::int64_t rows = 0, columns = 0;
  ElementType type;
};

/// What a job knows before a pass besides its options: the same on every rank, broadcast from rank 0, saved in
/// checkpoints.
struct State {
  int pass = 0;
  std::map<std::string, std::vector<double>> arrays;

  std::vector<std::byte> serialise() const;
  static State deserialise(std::span<const std::byte> bytes);  ///< throws Error(input)
};

enum class Next { done, pass_again };

class Job {
 public:
  virtual ~Job() = default;

  /// What each lane sums, and its scratch, in the pass that begin_pass() told of, or the first.
  virtual PartialLayout layout(const Ops& ops) const = 0;

  /// A job's output with one line a row, if it has one.
  virtual std::optional<RowOutput> row_output() const { return std::nullopt; }

  /// Rank 0, before the first pass: a look at the source's first milled block, to choose shifts. `lane` is a lane's
  /// partial for use as scratch; waits for its queue.
  virtual void pilot(const Block& block, PartialView lane, State& state, Ops& ops, Queue queue) = 0;

  /// Every rank, before each pass: what rank 0 decided.
  virtual void begin_pass(const State& state) = 0;

  /// Every lane, before its first block of a pass: constants into the lane's scratch.
  virtual void prepare(PartialView lane, Ops& ops, Queue queue) const = 0;

  /// Local and asynchronous; called by several lanes at once, each with its own partial.
  virtual void accumulate(const Block& block, PartialView lane, Ops& ops, Queue queue) const = 0;

  /// After accumulate: where the block's cross_product lies in the lane, if it was made; it tells cheaply whether
  /// values are missing.
  virtual const double* block_product(PartialView) const { return nullptr; }

  /// Jobs with a row output, after accumulate of the same block: its rows × width numbers, row-major, into `to` (device
  /// memory). Local and asynchronous, as accumulate. Others are never asked.
  virtual void write_rows(const Block& block, PartialView lane, double* to, Ops& ops, Queue queue) const;

  /// Rank 0, after the combine: results into the sink, or what the next pass needs into the state.
  virtual Next finish(HostPartial& global, State& state, ResultSink& sink) = 0;
};

/// The blocks a job likes, where --block-rows does not say: about `bytes` of input, but at least `rows` rows, so that
/// what is done once a block stays small beside what is done once a row.
struct BlockPreference {
  std::int64_t bytes = 1 << 20, rows = 256;
};

/// A data set of the result in the table on the screen.
struct Shown {
  std::string name;
  bool whole = false;  ///< whole numbers, with all their digits however large
};

/// All that the rest of the program knows of a job: each job's file fills in its own.
struct JobTraits {
  std::string name;
  std::string gives;  ///< for the list of commands in --help
  BlockPreference blocks = {};
  bool has_ddof = false;             ///< takes --ddof
  bool has_precision = false;        ///< takes --precision and --rtol; others work in fp64
  bool shifts = false;               ///< its products are of shifted values
  Missing missing = Missing::error;  ///< where --missing is not given
  std::vector<Shown> shown = {};     ///< in this order; empty: every data set of the result
  std::unique_ptr<Job> (*make)(const JobInput& input, const JobOptions& options) = nullptr;
};

/// The one list (registry.cpp), in the order of --help.
const std::vector<JobTraits>& all_jobs();
/// Throws Error(usage) for a name that is not in the list, as the two below.
const JobTraits& traits_of(const std::string& name);
BlockPreference block_preference(const std::string& name);
std::unique_ptr<Job> make_job(const std::string& name, const JobInput& input, const JobOptions& options);
std::vector<std::string> job_names();

}  // namespace rowmill
