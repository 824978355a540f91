#pragma once
// From "FILE:/DATASET" to a Source. Metadata is read once, by one rank: plan_input makes a plain plan (bytes that can
// be broadcast), make_source opens it on every rank without looking at metadata again.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/source.hpp"

namespace rowmill {

class MpiThread;

struct InputRequest {
  std::vector<std::string> inputs;  ///< "FILE" or "FILE:/DATASET"; several are joined along rows; as expand_inputs()
  std::string format = "auto";      ///< "auto", or one of file_formats()
  int row_axis = 0;
  std::string helper;                           ///< path of the helper program; empty: beside this program
  std::int64_t memory_limit = 1LL << 30;        ///< of the helper, bytes
  std::chrono::milliseconds time_limit{60000};  ///< of one answer of the helper
  MpiThread* mpi = nullptr;                     ///< reads data sets by MPI-IO; null: they are read directly
};

/// "FILE:/DATASET" cut at the last ":/" after which no file of the whole name exists.
std::pair<std::string, std::string> split_input(const std::string& input);

/// Everything a rank needs to read the source. Throws Error(usage) listing the choices where the data set is not clear,
/// Error(input) where a file cannot be used or does not fit the others.
std::vector<std::byte> plan_input(const InputRequest& request);

/// Opens the planned source. Throws Error(input). `request` as given to plan_input.
std::unique_ptr<Source> make_source(const std::vector<std::byte>& plan, const InputRequest& request);

/// For `info`: every data set of the (first) file, one line each, and which would be milled and why.
struct DatasetLine {
  std::string path, type, shape, storage;
  bool numeric = false;       ///< could be milled
  bool needs_filter = false;  ///< could be milled, but for a filter that is not built in
  bool part = false;          ///< of another data set, or an axis of others: milled only if it is named
  std::string why_not;        ///< else
};
struct FileListing {
  std::string path, format, format_reason;
  std::int64_t bytes = 0;
  std::vector<DatasetLine> datasets;
  std::vector<std::string> notes;
};
FileListing list_input(const InputRequest& request);

/// Path of a helper program that lies beside this program or in ../libexec/rowmill.
std::string find_helper(const std::string& name);

}  // namespace rowmill
