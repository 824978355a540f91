#include "io/answer_plan.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "io/format_plan.hpp"
#include "io/json_numbers.hpp"

namespace rowmill {

namespace {

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

DType dtype_of(int number, const std::string& subject) {
  if (number < 0 || number > static_cast<int>(DType::u64)) {
    throw Error(ExitCode::input, subject + ": the HDF5 helper's answer makes no sense: the file is damaged or hostile");
  }
  return static_cast<DType>(number);
}

void take_plan(const H5HelperClient::Answer& answer, InputPlan& plan) {
  const auto& json = answer.json;
  // extents beyond int64 become negative, which check_plan refuses
  plan.shape = whole_numbers<std::int64_t>(json.at("shape"));
  plan.type = {dtype_of(whole_number<int>(json.at("dtype")), plan.name()), json.at("swapped").get<bool>()};
  plan.stored_type = json.at("stored_type").get<std::string>();
  plan.storage = json.at("storage").get<std::string>();
  plan.way = way_of(json.at("way").get<std::string>(), plan.name());
  plan.offset = whole_number(json, "offset", std::int64_t{0});
  plan.fill = bytes_of_hex(json.at("fill").get<std::string>());
  if (json.contains("chunk")) plan.chunk = whole_numbers<std::int64_t>(json.at("chunk"));
  plan.edges_unfiltered = json.value("edges_unfiltered", false);
  for (const auto& step : json.value("filters", nlohmann::json::array())) {
    plan.filters.push_back({whole_number<std::uint32_t>(step.at(0)), whole_numbers<std::uint32_t>(step.at(1))});
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

}  // namespace

InputPlan plan_of_answers(InputPlan plan, const std::string& format, std::int64_t memory_limit, const AskForPlan& ask) {
  const H5HelperClient::Answer answer = ask(plan.dataset, format, plan.row_axis);
  const std::string name = plan.name();
  if (format != "hdf5" && answer.json.contains("group")) {
    // its parts are planned as they are stored
    const InputPlan file = plan;
    const PlanPart plan_part = [&](const std::string& part, int row_axis) {
      InputPlan of_part = file;
      of_part.dataset = part;
      of_part.row_axis = row_axis;
      return plan_of_answers(std::move(of_part), "hdf5", memory_limit, ask);
    };
    return trust_nothing(name, [&] { return plan_of_group(answer.json, std::move(plan), plan_part, memory_limit); });
  }
  trust_nothing(name, [&] { take_plan(answer, plan); });
  check_plan(plan, memory_limit);
  if (!plan.chunk.empty() && plan.chunk.size() != plan.shape.size()) {
    throw Error(ExitCode::input, name + ": its storage chunks make no sense: the file is damaged");
  }
  check_names(plan);
  return plan;
}

}  // namespace rowmill
