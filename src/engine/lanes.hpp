#pragma once
// Lanes: each computes one block at a time on its own queue into its own partial.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/partial.hpp"
#include "jobs/job.hpp"
#include "kernels/ops.hpp"
#include "pipeline/block_pipeline.hpp"

namespace rowmill {

class Lanes {
 public:
  struct Options {
    int count = 1;
    bool refuse_missing = false;  ///< stop at the first missing value
    bool look_for_inexact = false;
    std::string input;                  ///< named in messages, with
    std::vector<std::int64_t> columns;  ///< the numbers that its columns have in the input; empty: 0, 1, 2, …
    std::string missing_is = "NaN";     ///< what a missing value may be, named in messages
    std::string missing_cure = {};      ///< what to do about a missing value
    std::function<RowPlace(std::int64_t)> place = {};  ///< of a row; empty: the same row of `input`
  };

  /// Takes rows of a job's row output: the block's rows, and width numbers for each. Blocks come in any order.
  using TakeRows = std::function<void(RowRange, std::span<const double>)>;

  /// Adds what the engine itself counts ("first_missing", "inexact") to a job's layout, and room for the row output of
  /// a block, `row_values` numbers at most.
  static PartialLayout extended(PartialLayout layout, std::int64_t row_values = 0);

  /// `layout` as from extended(). Allocates each lane's partial.
  Lanes(PartialLayout layout, Backend& backend, Ops& ops, Options options);
  ~Lanes();

  int count() const { return static_cast<int>(lanes_.size()); }
  const PartialLayout& layout() const { return layout_; }

  /// Before anything else: makes the operations ready on every lane's queue. `shape.product` is what cross_product will
  /// be asked for if the job makes one.
  void prepare(const Job& job, BlockShape shape);

  /// Rank 0: the job's look at one block, on the first lane.
  void pilot(Job& job, const Block& block, State& state);
  Queue first_queue() const;  ///< of the first lane

  /// One pass: lanes take blocks from the pipeline until it is done. The caller's thread calls `watch` every few
  /// milliseconds meanwhile. `first`, if set, is the shard's first block, leased on first_queue() already: the first
  /// lane begins with it. A job's row output goes to `take_rows`, on the caller's thread; lanes wait while it is
  /// behind. Throws the first error by row (a missing value: Error(input) with its row), or what watch or take_rows
  /// throws.
  void mill(const Job& job, BlockPipeline& pipeline, std::optional<Lease> first, const std::function<void()>& watch,
            const TakeRows& take_rows = {});

  /// Merges what the lanes have summed into the first lane's partial, on first_queue().
  PartialView merge();
  /// The first lane's partial in host memory; where it lies there already it is not copied, and is good until the next
  /// pass begins.
  HostPartial fetch();

 private:
  struct Lane;
  class Crew;
  void reset(Lane& lane);

  PartialLayout layout_;
  Backend& backend_;
  Ops& ops_;
  Options options_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace rowmill
