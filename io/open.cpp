#include "io/open.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "core/error.hpp"
#include "io/chunk_source.hpp"
#include "io/column_join_source.hpp"
#include "io/contiguous_source.hpp"
#include "io/convention_source.hpp"
#include "io/decoded_source.hpp"
#include "io/file_format.hpp"
#include "io/fill_value.hpp"
#include "io/h5_input.hpp"
#include "io/helper_source.hpp"
#include "io/inputs.hpp"
#include "io/joined_plan.hpp"
#include "io/joined_source.hpp"
#include "io/mpiio/mpiio_source.hpp"
#include "io/npy_source.hpp"
#include "io/sparse_source.hpp"
#include "io/stored_chunks.hpp"

namespace rowmill {

namespace {

bool exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0;
}

bool is_file(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_executable(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0;
}

FileListing list_npy(const InputRequest& request, const ReadFile& file) {
  FileListing listing;
  listing.path = file.path();
  listing.format = "npy";
  listing.bytes = file.bytes();
  DatasetLine line;
  try {
    const InputPlan plan = plan_npy(file, request.row_axis, request.memory_limit);
    line.type = name_of(plan.type);
    line.storage = plan.storage;
    for (const std::int64_t extent : plan.shape)
      line.shape += (line.shape.empty() ? "" : " x ") + std::to_string(extent);
    line.numeric = true;
  } catch (const Error& e) {
    line.why_not = e.what();
  }
  listing.datasets.push_back(std::move(line));
  return listing;
}

std::unique_ptr<Source> source_of(const InputPlan& plan, const InputRequest& request);

std::unique_ptr<Source> source_of_parts(const InputPlan& plan, const InputRequest& request) {
  if (plan.way == Way::rows)
    return join_rows(plan, [request](const InputPlan& part) { return source_of(part, request); });
  std::vector<std::unique_ptr<Source>> parts;
  for (const InputPlan& part : plan.parts) parts.push_back(source_of(part, request));
  if (plan.way == Way::columns) return join_columns(plan, std::move(parts));
  return make_sparse_source(plan, {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])},
                            request.memory_limit);
}

std::unique_ptr<Source> source_as_stored(const InputPlan& plan, const InputRequest& request) {
  if (request.mpi != nullptr) check_for_mpiio(plan, *request.mpi);
  if (!plan.parts.empty()) return source_of_parts(plan, request);
  if (plan.rows() == 0 || plan.way == Way::fill) return std::make_unique<FillSource>(plan);
  if (request.mpi != nullptr) return std::make_unique<MpiioSource>(plan, *request.mpi, request.memory_limit);
  const HelperLimits limits{request.memory_limit, request.time_limit};
  switch (plan.way) {
    case Way::contiguous:
      return std::make_unique<ContiguousSource>(plan);
    case Way::chunks:
      if (is_read_in_place(plan)) return std::make_unique<ChunkSource>(plan);
      return std::make_unique<DecodedSource>(plan, chunks_at_addresses(plan), request.memory_limit);
    case Way::fetched:
      return std::make_unique<DecodedSource>(plan, chunks_by_helper(plan, helper_of(request), limits),
                                             request.memory_limit);
    default:
      return std::make_unique<HelperSource>(plan, helper_of(request), limits);
  }
}

/// The input that was meant where there is no file of the name given, but one of its beginning: "a.h5:X", "a.h5/X",
/// "a.h5:". Empty where there is none.
std::string meant_by(const std::string& input) {
  for (std::size_t at = input.find_last_of(":/"); at != std::string::npos && at > 0;
       at = input.find_last_of(":/", at - 1)) {
    const std::string path = input.substr(0, at);
    if (!is_file(path)) continue;
    const std::size_t name = input.find_first_not_of(":/", at);
    return name == std::string::npos ? path + " alone, or " + path + ":/DATASET" : path + ":/" + input.substr(name);
  }
  return {};
}

ReadFile open_input(const std::string& path) {
  const std::string meant = exists(path) ? "" : meant_by(path);
  if (meant.empty()) return ReadFile(path);
  throw Error(ExitCode::input, path + ": there is no such file; did you mean " + meant + "?");
}

InputPlan plan_file(const NamedInput& input, const InputRequest& request) {
  const ReadFile file = open_input(input.path);
  if (file_format(file, request.format) != "npy") return plan_h5(request, file, input.dataset);
  if (input.dataset.empty()) return plan_npy(file, request.row_axis, request.memory_limit);
  throw Error(ExitCode::usage, input.path + ": is a .npy file, it has no data sets: leave out :" + input.dataset);
}

std::unique_ptr<Source> source_of(const InputPlan& plan, const InputRequest& request) {
  return with_conventions(source_as_stored(plan, request), plan.conventions);
}

}  // namespace

std::pair<std::string, std::string> split_input(const std::string& input) {
  if (exists(input)) return {input, ""};
  std::size_t last = std::string::npos;
  // both names may hold ":/"; the cut is where the file is
  for (std::size_t at = input.rfind(":/"); at != std::string::npos && at > 0; at = input.rfind(":/", at - 1)) {
    if (last == std::string::npos) last = at;
    if (exists(input.substr(0, at))) {
      last = at;
      break;
    }
  }
  if (last == std::string::npos) return {input, ""};
  return {input.substr(0, last), input.substr(last + 1)};
}

std::vector<std::byte> plan_input(const InputRequest& request) {
  std::vector<InputPlan> plans =
      plan_each(expand_inputs(request.inputs), [&](const NamedInput& input) { return plan_file(input, request); });
  return serialise(plans.size() == 1 ? plans[0] : join_plans(std::move(plans), request.memory_limit));
}

std::unique_ptr<Source> make_source(const std::vector<std::byte>& plan, const InputRequest& request) {
  return source_of(deserialise_plan(plan), request);
}

FileListing list_input(const InputRequest& request) {
  const std::vector<NamedInput> inputs = expand_inputs(request.inputs);
  const ReadFile file = open_input(inputs[0].path);
  if (file_format(file, request.format) == "npy") return list_npy(request, file);
  FileListing listing = list_h5(request, file);
  try {
    listing.notes.push_back("milled if none is named: " + choose_dataset(listing));
  } catch (const Error&) {
    const bool some = std::any_of(listing.datasets.begin(), listing.datasets.end(),
                                  [](const DatasetLine& line) { return line.numeric; });
    if (some) listing.notes.emplace_back("none is milled unless it is named");  // else the reason is all there is
  }
  return listing;
}

std::string find_helper(const std::string& name) {
  std::array<char, PATH_MAX> self = {};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  const std::string program(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  for (const std::string& path : {folder + name, folder + "../libexec/rowmill/" + name}) {
    if (is_executable(path)) return path;
  }
  throw Error(ExitCode::failed, name + " is not beside the program (" + folder +
                                    ") nor in ../libexec/rowmill: build or " + "install it there");
}

}  // namespace rowmill
