#include "engine/plan.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "engine/machine.hpp"
#include "kernels/precision.hpp"

namespace rowmill {

namespace {

/// As it lies in a block; of sparse rows on average: indices and row starts are of 64 bits.
std::int64_t bytes_of_row(const SourceInfo& source) {
  const auto width = static_cast<std::int64_t>(size_of(source.type));
  if (source.entries < 0) return std::max<std::int64_t>(1, source.columns * width);
  return 8 + (8 + width) * source.entries / std::max<std::int64_t>(1, source.rows);
}

}  // namespace

std::int64_t choose_block_rows(const BlockPreference& preference, const SourceInfo& source, std::int64_t wish) {
  if (wish > 0) return wish;
  const std::int64_t row_bytes = bytes_of_row(source);
  const std::int64_t rows = std::max(preference.rows, preference.bytes / row_bytes);
  const std::int64_t chunk = std::max<std::int64_t>(1, source.storage_chunk_rows);
  if (rows >= chunk) return rows / chunk * chunk;
  // A storage chunk of up to eight preferred blocks is taken whole; taller ones are cut, since a block has to fit in
  // memory whatever the file's author chose.
  if (chunk <= 8 * rows) return chunk;
  for (std::int64_t pieces = (chunk - 1) / rows + 1; pieces <= 2 * (chunk / rows); ++pieces) {
    if (chunk % pieces == 0) return chunk / pieces;  // so that no block lies in two storage chunks
  }
  return rows;
}

BlockPreference preference_on(const std::string& backend, BlockPreference preference) {
  constexpr std::int64_t gpu_block_bytes = 64 << 20;
  if (backend == "cuda") preference.bytes = std::max(preference.bytes, gpu_block_bytes);
  return preference;
}

BlockPreference preference_by_entries(BlockPreference preference) {
  constexpr std::int64_t most_bytes = 2 << 20;
  preference.bytes = std::min(preference.bytes, most_bytes);
  return preference;
}

namespace {

std::string in_three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

ProductChoice automatic_precision(const ProductModel& model, std::int64_t columns, double rtol, const Ops& ops) {
  if (ops.compute_capability() == 0) {
    const bool single = size_of(model.type) <= 4 && rtol >= fp32_product_bound;
    return {single ? Precision::fp32 : Precision::fp64, slab_rows};
  }
  std::vector<Precision> offered;
  for (const Precision precision : all_precisions()) {
    if (ops.offers(precision, model.type)) offered.push_back(precision);
  }
  return cheapest_product(model, columns, rtol, ops.device_name(), offered);
}

}  // namespace

ProductChoice choose_precision(const std::string& wish, const ProductModel& model, std::int64_t columns, double rtol,
                               const Ops& ops) {
  if (wish == "auto") return automatic_precision(model, columns, rtol, ops);
  const std::optional<Precision> precision = parse_precision(wish);
  if (!precision) {
    throw Error(ExitCode::usage, "--precision must be auto, fp64, fp32, tf32, bf16, fp16, bf16x3 or int8");
  }
  if (!ops.offers(*precision, model.type)) {
    throw Error(ExitCode::usage,
                "--precision " + wish +
                    (ops.compute_capability() == 0
                         ? " needs a GPU: use auto, fp64 or fp32"
                         : " is not offered for " + name_of(model.type.dtype) + ": use auto or another precision"));
  }
  const std::int64_t chain = chain_rows_within(*precision, model, rtol);
  if (chain == 0) {
    const double least = product_bound({*precision, shortest_chain(*precision)}, model, 1 << 20);
    throw Error(ExitCode::usage, "--precision " + wish + " guarantees " + in_three_digits(least) +
                                     " and cannot meet --rtol " + in_three_digits(rtol) +
                                     ": use --precision fp64 or a larger --rtol");
  }
  return {*precision, chain};
}

bool multiplies_by_entries(const std::string& precision, const SourceInfo& source, const Ops& ops) {
  if (source.entries < 0 || !ops.multiplies_entries()) return false;
  if (precision != "auto" && precision != "fp64") return false;
  // a product of two entries costs about as much as so many of dense tiles in fp32
  constexpr double cost = 80;
  const auto columns = static_cast<double>(source.columns);
  return cost * source.entry_pairs <= static_cast<double>(source.rows) * columns * (columns + 1) / 2;
}

int processors_of_rank(int ranks_on_node) {
  return std::max(1, usable_processors() / std::max(1, ranks_on_node));
}

std::int64_t memory_of_rank(std::int64_t node_bytes, int ranks_on_node) {
  return (node_bytes > 0 ? node_bytes : available_memory() / 4) / std::max(1, ranks_on_node);
}

std::int64_t dense_bytes_of(const SourceInfo& source) {
  if (source.entries < 0) return 0;
  const double bytes = static_cast<double>(source.rows) * static_cast<double>(source.columns) *
                       static_cast<double>(size_of(source.type));
  return static_cast<std::int64_t>(std::min(bytes, 0x1p62));
}

namespace {

/// HDF5 and MPI buffers that come into being only when the result is combined and written (measured: 4 to 5 MiB).
constexpr std::int64_t late_bytes = 6 << 20;

/// The tops of order-free sums while ranks combine, or the combined partial on the host and one lane's copy of it where
/// partials are elsewhere; the result's matrices while they are written.
std::int64_t end_bytes(const PartialLayout& layout, bool apart) {
  std::int64_t result = 0, tops = 0;
  for (const PartialBlock& block : layout.blocks()) {
    if (block.combine == Combine::none) continue;
    result += block.count * 8 * 2;
    if (block.kind == ElementKind::binned) tops += 3 * block.count;
  }
  return (apart ? 2 * static_cast<std::int64_t>(layout.combined_bytes()) : tops) + 2 * result;
}

MemoryPlan plan_without_counts(const MemoryWish& wish, const PartialLayout& layout, std::int64_t slot_bytes,
                               bool apart) {
  MemoryPlan plan;
  plan.apart = apart;
  plan.node_bytes = wish.node_bytes > 0 ? wish.node_bytes : available_memory() / 4;
  plan.ranks_on_node = std::max(1, wish.ranks_on_node);
  plan.budget = plan.node_bytes / plan.ranks_on_node;
  plan.slot_bytes = slot_bytes;
  plan.lane_bytes = static_cast<std::int64_t>(layout.total_bytes());
  plan.reader_bytes = wish.reader_bytes;
  plan.shared_bytes = wish.shared_bytes;
  plan.lanes_read = !wish.read_elsewhere;
  plan.end_bytes = end_bytes(layout, apart);
  const std::int64_t program = wish.program_bytes > 0 ? wish.program_bytes : resident_memory();
  plan.fixed_bytes = program + plan.end_bytes + late_bytes;
  return plan;
}

/// Of the list of a rank's blocks, for each: the engine and the pipeline have one.
constexpr std::int64_t kShardBytes = 2 * sizeof(std::int64_t);

/// How many of `wanted` can be had of what is left.
std::int64_t affordable(std::int64_t wanted, std::int64_t each, std::int64_t left) {
  return std::clamp<std::int64_t>(each > 0 ? left / each : wanted, 0, std::max<std::int64_t>(0, wanted));
}

/// As an option takes it; rounded up, so that it is enough if it is asked for.
std::string enough(std::int64_t bytes) {
  constexpr std::int64_t mebibyte = 1 << 20, gibibyte = 1 << 30;
  if (bytes > 10 * gibibyte) return std::to_string((bytes - 1) / gibibyte + 1) + "GiB";
  return std::to_string((bytes - 1) / mebibyte + 1) + "MiB";
}

/// "a", "a or b", "a, b or c".
std::string either(const std::vector<std::string>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  }
  return text;
}

/// What would help where `least` is more than `budget`; `sums` grow with the columns.
std::vector<std::string> memory_cures(const MemoryPlan& plan, std::int64_t least, std::int64_t budget,
                                      std::int64_t sums) {
  std::vector<std::string> cures;
  if (2 * sums > least) cures.emplace_back("choose fewer columns with --columns");
  if (least - 2 * plan.slot_bytes < budget) cures.emplace_back("lower --block-rows");
  return cures;
}

/// The least that the node must have.
std::int64_t check_need(const MemoryPlan& plan) {
  const std::int64_t sums = plan.apart ? 0 : plan.lane_bytes;
  const std::int64_t reading = plan.shared_bytes + (plan.lanes_read ? 2 : 1) * plan.reader_bytes;
  const std::int64_t least = plan.fixed_bytes + sums + 2 * plan.slot_bytes + reading;
  if (least <= plan.budget) return least;
  std::vector<std::string> cures = memory_cures(plan, least, plan.budget, sums + plan.end_bytes);
  if (plan.ranks_on_node > 1 && plan.node_bytes >= least) {
    const std::int64_t ranks = plan.node_bytes / least;
    cures.push_back("start " + (ranks == 1 ? "one rank" : "at most " + counted(ranks, "rank")) + " on a node");
  }
  const std::int64_t all = least * plan.ranks_on_node;
  cures.insert(cures.begin(),
               all <= available_memory() ? "raise --memory to " + enough(all) : "use a node with more memory");
  throw Error(ExitCode::usage,
              "needs " + enough(least) + " of memory a rank (" + format_size(sums) + " for sums, " +
                  format_size(plan.end_bytes) + " to combine them and write the result, two blocks of " +
                  format_size(plan.slot_bytes) + ", " + format_size(reading) + " for reading, " +
                  format_size(plan.fixed_bytes - plan.end_bytes) + " for the program itself) and may use " +
                  format_size(plan.budget) + ": " + either(cures));
}

/// Who has sparse rows expects little memory to be taken, not a quarter of the machine.
void keep_sparse_small(MemoryPlan& plan, const MemoryWish& wish, std::int64_t least) {
  if (wish.node_bytes > 0 || wish.dense_bytes == 0) return;
  const std::int64_t most = std::min(plan.node_bytes, wish.dense_bytes / 10);
  if (most / plan.ranks_on_node < least) return;
  plan.node_bytes = most;
  plan.budget = most / plan.ranks_on_node;
}

/// The least that the device must have.
std::int64_t check_device_need(const MemoryPlan& plan) {
  const std::int64_t least = plan.device_fixed + plan.lane_bytes + plan.queue_bytes + 2 * plan.slot_bytes;
  if (plan.device_budget == 0 || least <= plan.device_budget) return least;
  std::vector<std::string> cures = memory_cures(plan, least, plan.device_budget, plan.lane_bytes + plan.device_fixed);
  cures.insert(cures.begin(), "raise --device-memory to " + enough(least));
  cures.emplace_back("use --backend host");
  throw Error(ExitCode::usage, "needs " + enough(least) + " of device memory a rank (" + format_size(plan.lane_bytes) +
                                   " for sums, " + format_size(plan.device_fixed) + " to combine them, two blocks of " +
                                   format_size(plan.slot_bytes) + ", " + format_size(plan.queue_bytes) +
                                   " for libraries) and may use " + format_size(plan.device_budget) + ": " +
                                   either(cures));
}

}  // namespace

MemoryPlan plan_memory(const MemoryWish& wish, const PartialLayout& layout, std::int64_t slot_bytes,
                       std::int64_t blocks_of_rank) {
  MemoryPlan plan = plan_without_counts(wish, layout, slot_bytes, false);
  plan.fixed_bytes += kShardBytes * blocks_of_rank;
  const std::int64_t least = check_need(plan);
  keep_sparse_small(plan, wish, least);
  // What is left over the least goes to further lanes (each needs its sums and a block in hand), then to readers, then
  // to blocks read ahead.
  std::int64_t left = plan.budget - least;
  const auto take = [&left](std::int64_t wanted, std::int64_t each) {
    const std::int64_t count = affordable(wanted, each, left);
    left -= count * each;
    return static_cast<int>(count);
  };
  const int processors = processors_of_rank(wish.ranks_on_node);
  const std::int64_t threads = std::min<std::int64_t>(wish.threads > 0 ? wish.threads : processors, blocks_of_rank);
  plan.lanes = 1 + take(threads - 1, plan.lane_bytes + slot_bytes + (plan.lanes_read ? plan.reader_bytes : 0));
  const std::int64_t readers = wish.io_threads > 0 ? wish.io_threads : plan.lanes;
  plan.io_threads = 1 + take(std::min(readers, blocks_of_rank) - 1, plan.reader_bytes);
  const std::int64_t slots = std::min<std::int64_t>(plan.lanes + std::max(1, wish.prefetch), blocks_of_rank + 1);
  plan.slots = 1 + plan.lanes + take(slots - 1 - plan.lanes, slot_bytes);
  return plan;
}

MemoryPlan plan_device_memory(const MemoryWish& wish, const DeviceRoom& device, const PartialLayout& layout,
                              std::int64_t slot_bytes, std::int64_t blocks_of_rank) {
  constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t most_lanes = 2, most_readers = 8;
  MemoryPlan plan = plan_without_counts(wish, layout, slot_bytes, true);
  plan.fixed_bytes += kShardBytes * blocks_of_rank;
  plan.queue_bytes = device.queue_bytes;
  plan.device_fixed = plan.lane_bytes;  // tops while ranks combine; both products while the first block is looked at
  plan.device_budget = device.bytes;
  std::int64_t left = plan.budget - check_need(plan);
  const std::int64_t device_least = check_device_need(plan);
  std::int64_t device_left = device.bytes > 0 ? device.bytes - device_least : no_limit;

  const auto take = [&](std::int64_t wanted, std::int64_t each, std::int64_t each_on_device) {
    const std::int64_t count = affordable(affordable(wanted, each, left), each_on_device, device_left);
    left -= count * each;
    device_left -= count * each_on_device;
    return static_cast<int>(count);
  };
  const std::int64_t lanes = wish.threads > 0 ? std::min<std::int64_t>(wish.threads, most_lanes) : most_lanes;
  plan.lanes = 1 + take(std::min(lanes, blocks_of_rank) - 1, slot_bytes + (plan.lanes_read ? plan.reader_bytes : 0),
                        plan.lane_bytes + plan.queue_bytes + slot_bytes);
  // bytes as they are stored come faster than a few threads can take them; decoding uses all processors
  const std::int64_t processors = processors_of_rank(wish.ranks_on_node);
  const std::int64_t default_readers = wish.reader_bytes > 0 ? processors : std::min(processors, most_readers);
  const std::int64_t readers = wish.io_threads > 0 ? wish.io_threads : default_readers;
  plan.io_threads = 1 + take(std::min(readers, blocks_of_rank) - 1, plan.reader_bytes, 0);
  // a reader keeps its slot while it reads
  const std::int64_t ahead = std::max<std::int64_t>({1, wish.prefetch, plan.io_threads});
  const std::int64_t slots = std::min<std::int64_t>(plan.lanes + ahead, blocks_of_rank + 1);
  plan.slots = 1 + plan.lanes + take(slots - 1 - plan.lanes, slot_bytes, slot_bytes);
  return plan;
}

}  // namespace rowmill
