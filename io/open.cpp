#include "io/open.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "core/error.hpp"
#include "io/chunk_source.hpp"
#include "io/contiguous_source.hpp"
#include "io/file_format.hpp"
#include "io/h5_input.hpp"
#include "io/helper_source.hpp"
#include "io/npy_source.hpp"

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

namespace {

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

ReadFile open_input(const std::string& input) {
  const std::string path = split_input(input).first;
  if (!exists(path)) {
    if (const std::string meant = meant_by(input); !meant.empty())
      throw Error(ExitCode::input, input + ": there is no such file; did you mean " + meant + "?");
    if (path.find_first_of("*?[") != std::string::npos)
      throw Error(ExitCode::input,
                  path + ": there is no such file, and patterns are not matched: a run takes one file");
  }
  return ReadFile(path);
}

}  // namespace

std::vector<std::byte> plan_input(const InputRequest& request) {
  const auto [path, dataset] = split_input(request.input);
  const ReadFile file = open_input(request.input);
  if (file_format(file, request.format) == "npy") {
    if (!dataset.empty()) {
      throw Error(ExitCode::usage, path + ": is a .npy file, it has no data sets: leave out :" + dataset);
    }
    return serialise(plan_npy(file, request.row_axis, request.memory_limit));
  }
  return serialise(plan_h5(request, file, dataset));
}

std::unique_ptr<Source> make_source(const std::vector<std::byte>& plan, const InputRequest& request) {
  const InputPlan input = deserialise_plan(plan);
  if (input.rows() == 0) return std::make_unique<FillSource>(input);
  switch (input.way) {
    case Way::fill:
      return std::make_unique<FillSource>(input);
    case Way::contiguous:
      return std::make_unique<ContiguousSource>(input);
    case Way::chunks:
      return std::make_unique<ChunkSource>(input);
    case Way::helper:
      break;
  }
  return std::make_unique<HelperSource>(input, helper_of(request),
                                        HelperLimits{request.memory_limit, request.time_limit});
}

FileListing list_input(const InputRequest& request) {
  const ReadFile file = open_input(request.input);
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
