#pragma once
// Some of the columns of a sparse source.
#include <cstdint>
#include <memory>
#include <vector>

#include "io/source.hpp"

namespace rowmill {

/// As select_columns(), for a source that delivers sparse rows; the columns have been checked.
std::unique_ptr<Source> select_sparse_columns(std::unique_ptr<Source> source, std::vector<std::int64_t> columns);

}  // namespace rowmill
