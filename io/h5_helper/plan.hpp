#pragma once
// How a data set lies in its file, as plain numbers for the program to check and to read by.
#include <nlohmann/json.hpp>
#include <vector>

#include "io/h5_helper/opened.hpp"
#include "io/h5_helper/protocol.hpp"

namespace rowmill::h5 {

struct PlanAnswer {
  nlohmann::json json;
  std::vector<ChunkEntry> chunks;
};

/// Throws Refusal where the data set cannot be milled.
PlanAnswer make_plan(hid_t file, const OpenedDataset& dataset);

/// Why it cannot be milled; empty if it can (as far as metadata tell). The first of the next two that says something.
std::string why_not(const OpenedDataset& dataset);

/// Why it holds no rows of numbers; empty if it does.
std::string why_no_rows(const OpenedDataset& dataset);

/// The filter that it needs and that is not built in; empty if there is none.
std::string missing_filter(const OpenedDataset& dataset);

/// "contiguous", "chunked 1024 x 512, shuffle + gzip 4", …
std::string storage_text(const OpenedDataset& dataset);

/// "100 x 20", "scalar", "null".
std::string shape_text(const OpenedDataset& dataset);

}  // namespace rowmill::h5
