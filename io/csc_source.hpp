#pragma once
// Sparse matrices by columns (CSC), read as rows.
#include <memory>

#include "io/sparse_source.hpp"

namespace rowmill {

/// A source of sparse rows for a checked plan by columns. The rows that prepare() says will be asked for, or all, are
/// turned and held when the first of them is read; others, whenever they are asked for, at the price of a walk over
/// all entries. Holds at most `memory_limit` bytes.
std::unique_ptr<Source> make_csc_source(const InputPlan& plan, SparseParts parts, std::int64_t memory_limit);

}  // namespace rowmill
