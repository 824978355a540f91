#pragma once
// Tables on the screen.
#include <string>
#include <vector>

#include "engine/run.hpp"
#include "jobs/job.hpp"

namespace rowmill {

/// Answers that `rowmill generate` planted in the input's file; empty where there are none.
struct Planted {
  std::vector<double> mean, deviation;
};

/// The data sets of a result, each with its first rows and columns: those with one value a column side by side in one
/// table, with planted answers behind mean and std. `shown`: which and in which order; empty: all.
std::string result_tables(const RunReport& report, const Planted& planted, std::vector<Shown> shown);

/// Columns of text, right-aligned but for the first, two spaces apart. Cells are shown without control characters, and
/// cut where they are long.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// A number as people read it: seven significant digits.
std::string format_number(double value);

}  // namespace rowmill
