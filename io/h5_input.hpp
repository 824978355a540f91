#pragma once
// HDF5 files by way of the helper: listing, planning, reading with H5Dread.
#include <memory>
#include <string>

#include "io/input_plan.hpp"
#include "io/open.hpp"
#include "io/read_file.hpp"

namespace rowmill {

/// An empty `dataset` is the one that choose_dataset() chooses. Throws Error(input), and as choose_dataset().
InputPlan plan_h5(const InputRequest& request, const ReadFile& file, const std::string& dataset);

/// Every data set. Throws Error(input).
FileListing list_h5(const InputRequest& request, const ReadFile& file);

/// The data set that is meant where none is named: the only numeric one, /X or /matrix. Throws Error(usage) listing the
/// choices, Error(input) where there is none, or where it needs a filter that is not built in.
std::string choose_dataset(const FileListing& listing);

/// Path of the helper program for this request.
std::string helper_of(const InputRequest& request);

}  // namespace rowmill
