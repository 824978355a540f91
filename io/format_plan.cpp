#include "io/format_plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/column_join_source.hpp"
#include "io/json_numbers.hpp"
#include "io/sparse_source.hpp"

namespace rowmill {

namespace {

using nlohmann::json;

void take_common(const json& answer, InputPlan& plan) {
  plan.format = answer.value("format", "hdf5");
  plan.format_reason = answer.value("reason", "");
  plan.column_names = answer.value("names", std::vector<std::string>());
}

/// Indices or values of a matrix that has none.
InputPlan no_entries(const InputPlan& whole, DType type) {
  InputPlan part;
  part.path = whole.path;
  part.dataset = whole.dataset;
  part.format = "hdf5";
  part.way = Way::fill;
  part.shape = {0};
  part.type = {type, false};
  part.stored_type = name_of(type);
  part.fill.resize(size_of(type));
  part.file_bytes = whole.file_bytes;
  return part;
}

InputPlan plan_sparse(const json& answer, InputPlan plan, const PlanPart& plan_part, std::int64_t memory_limit) {
  plan.way = answer.at("by_columns").get<bool>() ? Way::csc : Way::csr;
  for (const char* name : {"pointers", "indices", "values"}) {
    const auto below = answer.at(name).get<std::string>();
    const DType none = std::string(name) == "values" ? DType::f64 : DType::u64;
    plan.parts.push_back(below.empty() ? no_entries(plan, none) : plan_part(plan.dataset + "/" + below, 0));
  }
  const InputPlan& values = plan.parts[2];
  plan.type = values.type;
  plan.stored_type = values.stored_type;
  plan.storage = std::string(plan.way == Way::csc ? "sparse by columns" : "sparse by rows") + ", values " +
                 (values.storage.empty() ? "not stored" : values.storage);
  check_plan(plan, memory_limit);
  check_sparse_plan(plan, memory_limit);
  return plan;
}

InputPlan plan_columns(const json& answer, InputPlan plan, const PlanPart& plan_part, std::int64_t memory_limit) {
  const auto& parts = answer.at("parts");
  if (parts.empty()) throw Error(ExitCode::input, plan.name() + ": none of its columns is stored");
  const auto part_of = [&](const json& part) {
    return plan_part(plan.dataset + "/" + part.at("path").get<std::string>(), whole_number<int>(part.at("axis")));
  };
  if (parts.size() == 1) {
    // one block is read as any data set
    InputPlan only = part_of(parts[0]);
    take_common(answer, only);
    check_names(only);
    return only;
  }
  plan.way = Way::columns;
  plan.type = {DType::f64, false};
  for (const json& part : parts) {
    plan.parts.push_back(part_of(part));
    plan.parts.back().places = whole_numbers<std::int64_t>(part.at("places"));
    plan.stored_type += (plan.stored_type.empty() ? "" : " + ") + plan.parts.back().stored_type;
  }
  plan.storage = std::to_string(parts.size()) + " blocks of columns, " + plan.parts[0].storage;
  check_plan(plan, memory_limit);
  check_columns_plan(plan);
  return plan;
}

}  // namespace

void take_format(const json& answer, InputPlan& plan) {
  take_common(answer, plan);
  plan.row_axis = whole_number(answer, "axis", plan.row_axis);
  if (answer.contains("conventions")) plan.conventions = conventions_from(answer.at("conventions"));
}

InputPlan plan_of_group(const json& answer, InputPlan plan, const PlanPart& plan_part, std::int64_t memory_limit) {
  take_common(answer, plan);
  plan.row_axis = 0;
  plan.shape = whole_numbers<std::int64_t>(answer.at("shape"));
  for (const json& warning : answer.at("warnings")) {
    plan.warnings.push_back(plan.name() + ": " + warning.get<std::string>());
  }
  const bool sparse = answer.at("group").get<std::string>() == "sparse";
  plan = sparse ? plan_sparse(answer, std::move(plan), plan_part, memory_limit)
                : plan_columns(answer, std::move(plan), plan_part, memory_limit);
  for (const InputPlan& part : plan.parts) {
    plan.warnings.insert(plan.warnings.end(), part.warnings.begin(), part.warnings.end());
  }
  check_names(plan);
  return plan;
}

void check_names(InputPlan& plan) {
  if (static_cast<std::int64_t>(plan.column_names.size()) != plan.columns()) plan.column_names.clear();
}

}  // namespace rowmill
