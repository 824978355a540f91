#include "io/h5_input.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "io/answer_plan.hpp"
#include "io/h5_helper_client.hpp"

namespace rowmill {

namespace {

HelperLimits limits_of(const InputRequest& request) {
  return {request.memory_limit, request.time_limit};
}

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
  InputPlan plan;
  plan.path = file.path();
  plan.dataset = name;
  plan.row_axis = request.row_axis;
  plan.file_bytes = file.bytes();
  plan.modified_ns = file.modified_ns();
  const auto ask = [&](const std::string& asked, const std::string& format, int row_axis) {
    helper.talk_about(file.path() + ":" + asked);
    return helper.ask({{"op", "plan"}, {"axis", row_axis}, {"format", format}}, file.path() + '\0' + asked);
  };
  return plan_of_answers(std::move(plan), request.format, request.memory_limit, ask);
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
