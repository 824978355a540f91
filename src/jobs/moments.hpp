#pragma once
// Column moments about a shift: what stats and cov share. A working value is w = (x - shift) * scale, scale a power of
// two; with n values, S = Σw and Q = Σw², the mean is shift + S / n / scale and the variance (Q - S²/n) / (n - ddof) /
// scale² (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", Am. Stat. 37 (1983), eq. 1.6).
#include <cstdint>
#include <string>
#include <vector>

#include "jobs/job.hpp"

namespace rowmill {

/// Adds the blocks that column moments need: count, missing, sum, second, min, max; scratch for one block; and the
/// constants shift and scale.
void add_moments(PartialLayout& layout, std::int64_t columns);

/// Copies the state's "shift" and "scale" into the lane's constants.
void prepare_moments(PartialView lane, const State& state, Ops& ops, Queue queue);

/// The lane's constants as a ColumnMap.
ColumnMap column_map(PartialView lane);

/// Moments of one block, added to the lane's.
void accumulate_moments(const Block& block, PartialView lane, Ops& ops, Queue queue);

/// Rank 0: chooses each column's shift from a block: the finite value nearest to its mean there, or 0; sparse rows have
/// the shift 0. Sets the state's "shift" and "scale" (ones).
void choose_shift(const Block& block, PartialView lane, State& state, Ops& ops, Queue queue);

/// Moments of all rows, finished. Arrays have one entry a column.
struct Moments {
  std::vector<std::int64_t> count, missing;
  std::vector<double> sum, mean, variance, deviation, min, max;
  std::vector<double> delta;   ///< S / n: how far the shift misses the mean, in working units
  std::vector<double> spread;  ///< δ² / σ²: what widens the error bounds; 0 for constant columns
  std::vector<std::uint8_t> constant;
  double worst_spread = 0;

  /// True if a column's range leaves what squares in fp64 can hold.
  bool out_of_range = false;
};
Moments finish_moments(HostPartial& global, const State& state, int ddof);

/// If the shift was poor (spread above `limit` somewhere) or a range did not fit: sets shift and scale to what is known
/// now and returns true. Only after the first pass.
bool improve_shift(const Moments& moments, double limit, State& state);

/// Copies `count` doubles from device memory.
std::vector<double> fetch(const double* from, std::int64_t count, Ops& ops, Queue queue);

/// Copies host values into device memory and waits.
void upload(double* to, const std::vector<double>& values, Ops& ops, Queue queue);

}  // namespace rowmill
