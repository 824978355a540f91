#pragma once
// Sparse matrices in three data sets: pointers (where each row's entries begin), indices (the column of each entry) and
// values. CSR of AnnData; 10x Genomics' CSC of features × barcodes, which is CSR of cells × features; and CSC proper.
#include <memory>
#include <vector>

#include "io/input_plan.hpp"
#include "io/source.hpp"

namespace rowmill {

/// The three data sets of a sparse plan, each a source of one column.
struct SparseParts {
  std::unique_ptr<Source> pointers, indices, values;
};

/// Throws Error(input) unless the parts of a sparse plan fit together; they themselves have been checked.
/// `memory_limit`: bytes that the pointers may take, unless the file is larger.
void check_sparse_plan(const InputPlan& plan, std::int64_t memory_limit);

/// A source of sparse rows for a checked plan. Reads the pointers, eight bytes a row from then on. Rows of a plan by
/// columns are turned in memory, at most `memory_limit` bytes (csc_source.hpp). Throws Error(input) naming the row.
std::unique_ptr<Source> make_sparse_source(const InputPlan& plan, SparseParts parts, std::int64_t memory_limit);

}  // namespace rowmill
