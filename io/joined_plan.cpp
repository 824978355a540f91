#include "io/joined_plan.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/convention_source.hpp"
#include "io/widen.hpp"

namespace rowmill {

namespace {

[[noreturn]] void refuse(const InputPlan& part, const std::string& why) {
  throw Error(ExitCode::input, part.name() + ": " + why);
}

void check_columns(const InputPlan& first, const InputPlan& part) {
  if (part.columns() != first.columns()) {
    refuse(part, "has " + std::to_string(part.columns()) + " columns, " + first.name() + " has " +
                     std::to_string(first.columns()) + ": files that are joined along rows must have the same");
  }
  if (is_sparse(part) != is_sparse(first)) {
    refuse(part, std::string("is ") + (is_sparse(part) ? "sparse, " : "dense, ") + first.name() +
                     " is not: write one of them again as the other is");
  }
}

void check_names(const InputPlan& first, const InputPlan& part) {
  for (std::size_t i = 0; i < part.column_names.size(); ++i) {
    if (part.column_names[i] == first.column_names[i]) continue;
    refuse(part, "its column " + std::to_string(i) + " is named '" + part.column_names[i] + "', that of " +
                     first.name() + " '" + first.column_names[i] +
                     "': write them again with the same columns in the same order");
  }
}

/// A type that holds the values of all parts.
ElementType common_type_of(const std::vector<InputPlan>& parts) {
  std::vector<ElementType> types;
  std::vector<const InputPlan*> first_of_type;
  ElementType common;
  for (const InputPlan& part : parts) {
    const ElementType type = delivered_type(part);
    if (std::find(types.begin(), types.end(), type) != types.end()) continue;
    types.push_back(type);
    first_of_type.push_back(&part);
    const auto found = common_type(types);
    if (found && (types.size() == 1 || !is_sparse(part))) {
      common = *found;
      continue;
    }
    // the one that does not go with it, or the first where only all together have no type
    std::size_t other = 0;
    while (other + 2 < types.size() && common_type(std::vector{types[other], type})) ++other;
    if (common_type(std::vector{types[other], type})) other = 0;
    refuse(part,
           "holds " + name_of(type) + ", " + first_of_type[other]->name() + " " + name_of(types[other]) + ": " +
               (found ? "sparse matrices must be of the same type" : "no type holds the values of all files exactly") +
               ": write them again in one type");
  }
  return common;
}

/// "a", or "a + b" where parts differ.
template <typename Text>
std::string texts_of(const std::vector<InputPlan>& parts, const Text& text_of) {
  std::vector<std::string> all;
  for (const InputPlan& part : parts) {
    std::string text = text_of(part);
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
  }
  std::string result = all[0];
  for (std::size_t i = 1; i < all.size() && i < 4; ++i) result += " + " + all[i];
  return all.size() <= 4 ? result : result + " + …";
}

/// A warning that many files give is said of the first of them.
std::vector<std::string> warnings_of(const std::vector<InputPlan>& parts) {
  struct Said {
    std::string text, first;
    std::size_t files = 0;
  };
  std::vector<Said> said;
  for (const InputPlan& part : parts) {
    for (const std::string& warning : part.warnings) {
      const std::string name = part.name();
      const std::string text = warning.starts_with(name) ? warning.substr(name.size()) : warning;
      const auto before = std::find_if(said.begin(), said.end(), [&](const Said& s) { return s.text == text; });
      if (before == said.end()) {
        said.push_back({text, warning, 1});
      } else {
        ++before->files;
      }
    }
  }
  std::vector<std::string> result;
  for (const Said& s : said) {
    result.push_back(s.files == 1 ? s.first : s.first + " (and so of " + std::to_string(s.files - 1) + " more files)");
  }
  return result;
}

}  // namespace

bool is_sparse(const InputPlan& plan) {
  return plan.way == Way::csr || plan.way == Way::csc;
}

ElementType delivered_type(const InputPlan& plan) {
  return delivered_type(plan.type, plan.conventions);
}

InputPlan join_plans(std::vector<InputPlan> parts, std::int64_t row_limit) {
  InputPlan joined;
  joined.way = Way::rows;
  std::int64_t rows = 0;
  const InputPlan* named = nullptr;
  for (const InputPlan& part : parts) {
    check_columns(parts[0], part);
    if (!part.column_names.empty()) {
      if (named == nullptr) named = &part;
      check_names(*named, part);
    }
    if (__builtin_add_overflow(rows, part.rows(), &rows) ||
        __builtin_add_overflow(joined.file_bytes, part.file_bytes, &joined.file_bytes)) {
      refuse(part, "has more rows than can be counted together with the files before it");
    }
    joined.modified_ns = std::max(joined.modified_ns, part.modified_ns);
  }
  joined.path = parts[0].name() + " and " + std::to_string(parts.size() - 1) + " more";
  joined.shape = {rows, parts[0].columns()};
  joined.type = common_type_of(parts);
  if (named != nullptr) joined.column_names = named->column_names;
  joined.format = texts_of(parts, [](const InputPlan& part) { return part.format; });
  if (joined.format == parts[0].format) joined.format_reason = parts[0].format_reason;
  joined.stored_type = texts_of(parts, [](const InputPlan& part) { return part.stored_type; });
  joined.storage = texts_of(parts, [](const InputPlan& part) { return part.storage; });
  joined.warnings = warnings_of(parts);
  joined.parts = std::move(parts);
  check_plan(joined, row_limit);
  return joined;
}

void describe_parts(const InputPlan& plan, SourceInfo& info) {
  std::int64_t first_row = 0;
  info.way = texts_of(plan.parts, [](const InputPlan& part) { return info_of(part).way; });
  for (const InputPlan& part : plan.parts) {
    const SourceInfo one = info_of(part);
    if (one.rows > 0) info.storage_chunk_rows = std::max(info.storage_chunk_rows, one.storage_chunk_rows);
    info.files.push_back({one.path, one.dataset, one.format, one.stored_type, one.shape, one.row_axis, first_row,
                          one.rows, one.file_bytes, one.modified_ns});
    first_row += one.rows;
  }
}

}  // namespace rowmill
