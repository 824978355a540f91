#pragma once
// Answers of the HDF5 helper in an input of answer_fuzz: lines of JSON, one an answer (the last comes again), with the
// table of storage chunks behind a NUL.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "io/answer_plan.hpp"

namespace rowmill::test {

inline constexpr std::int64_t kAnswersMemory = 1 << 20;

/// The helper's client has parsed an answer, and lets objects through alone.
class Answers {
 public:
  explicit Answers(std::string_view input) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    text_ = input.substr(0, end);
    const std::string_view table = input.substr(std::min(input.size(), end + 1));
    table_.resize(table.size());
    if (!table.empty()) std::memcpy(table_.data(), table.data(), table.size());
  }

  H5HelperClient::Answer next() {
    const std::size_t end = text_.find('\n');
    H5HelperClient::Answer answer{nlohmann::json::parse(text_.substr(0, end), nullptr, false), table_};
    if (end != std::string_view::npos) text_.remove_prefix(end + 1);
    if (!answer.json.is_object()) throw Error(ExitCode::input, "no answer");
    return answer;
  }

 private:
  std::string_view text_;
  std::vector<std::byte> table_;
};

/// Throws Error.
inline InputPlan plan_of_input(std::string_view input) {
  Answers answers(input);
  InputPlan file;
  file.path = "a.h5";
  file.dataset = "/X";
  file.file_bytes = 10000;
  return plan_of_answers(file, "auto", kAnswersMemory,
                         [&](const std::string&, const std::string&, int) { return answers.next(); });
}

}  // namespace rowmill::test
