#include "io/h5_input.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "io/format_plan.hpp"
#include "io/h5_helper_answer.hpp"
#include "io/h5_helper_client.hpp"

namespace rowmill {

namespace {

HelperLimits limits_of(const InputRequest& request) {
  return {request.memory_limit, request.time_limit};
}

/// Runs `take`, which reads an answer field by field; a field that is not there or of another kind is a damaged file.
template <typename F>
auto trust_nothing(const std::string& subject, F&& take) {
  try {
    return take();
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::input, subject + ": the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  }
}

std::vector<std::byte> bytes_of_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < text.size() && bytes.size() < 16; at += 2) {
    bytes.push_back(static_cast<std::byte>(std::strtoul(text.substr(at, 2).c_str(), nullptr, 16)));
  }
  return bytes;
}

Way way_of(const std::string& text, const std::string& subject) {
  if (text == "contiguous") return Way::contiguous;
  if (text == "chunks") return Way::chunks;
  if (text == "fetched") return Way::fetched;
  if (text == "fill") return Way::fill;
  if (text == "helper") return Way::helper;
  throw Error(ExitCode::input, subject + ": the HDF5 helper's answer makes no sense: the file is damaged or hostile");
}

/// Extents beyond int64 become -1, which check_plan refuses.
std::vector<std::int64_t> extents(const nlohmann::json& list) {
  std::vector<std::int64_t> result;
  for (const auto& extent : list) {
    const auto value = extent.get<std::uint64_t>();
    result.push_back(value > static_cast<std::uint64_t>(INT64_MAX) ? -1 : static_cast<std::int64_t>(value));
  }
  return result;
}

DType dtype_of(int number, const std::string& subject) {
  if (number < 0 || number > static_cast<int>(DType::u64)) {
    throw Error(ExitCode::input, subject + ": the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  }
  return static_cast<DType>(number);
}

void take_plan(const H5HelperClient::Answer& answer, InputPlan& plan) {
  const auto& json = answer.json;
  plan.shape = extents(json.at("shape"));
  plan.type = {dtype_of(json.at("dtype").get<int>(), plan.name()), json.at("swapped").get<bool>()};
  plan.stored_type = json.at("stored_type").get<std::string>();
  plan.storage = json.at("storage").get<std::string>();
  plan.way = way_of(json.at("way").get<std::string>(), plan.name());
  plan.offset = json.value("offset", std::int64_t{0});
  plan.fill = bytes_of_hex(json.at("fill").get<std::string>());
  if (json.contains("chunk")) plan.chunk = extents(json.at("chunk"));
  plan.edges_unfiltered = json.value("edges_unfiltered", false);
  for (const auto& step : json.value("filters", nlohmann::json::array())) {
    plan.filters.push_back({step.at(0).get<std::uint32_t>(), step.at(1).get<std::vector<std::uint32_t>>()});
  }
  for (const auto& warning : json.at("warnings")) {
    plan.warnings.push_back(plan.name() + ": " + warning.get<std::string>());
  }
  plan.has_planted = json.at("planted").get<bool>() && !plan.dataset.starts_with("/planted/");
  plan.chunk_table.resize(answer.tail.size() / sizeof(h5::ChunkEntry));
  if (!plan.chunk_table.empty()) {
    std::memcpy(plan.chunk_table.data(), answer.tail.data(), plan.chunk_table.size() * sizeof(h5::ChunkEntry));
  }
  take_format(json, plan);
}

/// Asks for plans of one file's data sets.
class Planner {
 public:
  Planner(H5HelperClient& helper, const ReadFile& file, std::int64_t memory_limit)
      : helper_(helper), file_(file), memory_limit_(memory_limit) {}

  /// `format`: "auto", or the one that is given; parts of a group are planned as they are stored.
  InputPlan plan(const std::string& dataset, const std::string& format, int row_axis) {
    InputPlan plan;
    plan.path = file_.path();
    plan.dataset = dataset;
    plan.row_axis = row_axis;
    plan.file_bytes = file_.bytes();
    plan.modified_ns = file_.modified_ns();
    helper_.talk_about(plan.name());
    const auto answer =
        helper_.ask({{"op", "plan"}, {"axis", row_axis}, {"format", format}}, file_.path() + '\0' + dataset);
    const bool group = format != "hdf5" && answer.json.contains("group");
    trust_nothing(plan.name(), [&] {
      if (group) {
        const auto plan_part = [&](const std::string& part, int axis) { return this->plan(part, "hdf5", axis); };
        plan = plan_of_group(answer.json, std::move(plan), plan_part, memory_limit_);
      } else {
        take_plan(answer, plan);
      }
    });
    if (group) return plan;
    check_plan(plan, memory_limit_);
    if (!plan.chunk.empty() && plan.chunk.size() != plan.shape.size()) {
      throw Error(ExitCode::input, plan.name() + ": its storage chunks make no sense: the file is damaged");
    }
    check_names(plan);
    return plan;
  }

 private:
  H5HelperClient& helper_;
  const ReadFile& file_;
  std::int64_t memory_limit_;
};

FileListing list_by(H5HelperClient& helper, const ReadFile& file, const std::string& format) {
  FileListing listing;
  listing.path = file.path();
  listing.format = "hdf5";
  listing.bytes = file.bytes();
  const auto answer = helper.ask({{"op", "list"}, {"format", format}}, file.path());
  trust_nothing(file.path(), [&] {
    for (const auto& entry : answer.json.at("datasets")) {
      DatasetLine line;
      line.path = entry.at("path").get<std::string>();
      line.type = entry.at("type").get<std::string>();
      line.shape = entry.at("shape").get<std::string>();
      line.storage = entry.at("storage").get<std::string>();
      line.numeric = entry.at("numeric").get<bool>();
      line.needs_filter = entry.at("needs_filter").get<bool>();
      line.part = entry.value("part", false);
      line.why_not = entry.at("why_not").get<std::string>();
      listing.datasets.push_back(std::move(line));
    }
    listing.notes = answer.json.at("notes").get<std::vector<std::string>>();
    listing.format = answer.json.value("format", "hdf5");
    listing.format_reason = answer.json.value("reason", "");
  });
  std::sort(listing.datasets.begin(), listing.datasets.end(),
            [](const DatasetLine& a, const DatasetLine& b) { return a.path < b.path; });
  return listing;
}

}  // namespace

std::string helper_of(const InputRequest& request) {
  return request.helper.empty() ? find_helper("rowmill-h5-helper") : request.helper;
}

FileListing list_h5(const InputRequest& request, const ReadFile& file) {
  H5HelperClient helper(helper_of(request), file.path(), limits_of(request), 0);
  return list_by(helper, file, request.format);
}

InputPlan plan_h5(const InputRequest& request, const ReadFile& file, const std::string& dataset) {
  // one helper for all questions: starting it takes longer than its answers
  H5HelperClient helper(helper_of(request), file.path(), limits_of(request), 0);
  std::string name = dataset.empty() ? choose_dataset(list_by(helper, file, request.format)) : dataset;
  if (!name.starts_with('/')) name = "/" + name;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return Planner(helper, file, request.memory_limit).plan(name, request.format, request.row_axis);
}

std::string choose_dataset(const FileListing& listing) {
  // that it cannot be read must be said, not passed over in favour of another
  const auto readable = [&](const DatasetLine& line) {
    if (line.numeric) return line.path;
    throw Error(ExitCode::input, listing.path + ":" + line.path + ": " + line.why_not);
  };
  std::vector<const DatasetLine*> numeric;
  for (const DatasetLine& line : listing.datasets) {
    const bool known_place = line.path == "/X" || line.path == "/matrix";
    if (known_place && line.type == "?") return readable(line);  // throws: it cannot be opened
    if (!line.numeric && !line.needs_filter) continue;
    if (line.part) continue;
    if (line.path.starts_with("/planted/")) continue;  // answers that `generate` wrote beside its data
    if (known_place) return readable(line);
    numeric.push_back(&line);
  }
  if (numeric.size() == 1) return readable(*numeric[0]);
  if (numeric.empty()) {
    std::string why = listing.path + ": holds no numeric data set";
    if (!listing.datasets.empty()) why += " (" + listing.datasets[0].path + ": " + listing.datasets[0].why_not + ")";
    if (!listing.notes.empty()) why += "; " + listing.notes[0];
    why += listing.datasets.empty() ? "" : ": rowmill info " + listing.path + " lists what it holds";
    throw Error(ExitCode::input, why);
  }
  std::string choices;
  for (std::size_t i = 0; i < numeric.size() && i < 12; ++i) {
    choices += (i == 0 ? "" : ", ") + numeric[i]->path + " (" + numeric[i]->shape + " " + numeric[i]->type + ")";
  }
  if (numeric.size() > 12) choices += " and " + std::to_string(numeric.size() - 12) + " more";
  throw Error(ExitCode::usage,
              listing.path + ": holds several data sets, name one as " + listing.path + ":/NAME: " + choices);
}

}  // namespace rowmill
