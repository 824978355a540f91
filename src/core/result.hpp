#pragma once
// What a job hands over at the end: small named arrays, attributes, and the lines people see.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rowmill {

struct ResultDataset {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;  ///< row-major
};

using AttributeValue = std::variant<std::string, std::int64_t, double>;

/// Filled by Job::finish on rank 0; written by io/result_writer.
class ResultSink {
 public:
  /// Throws std::logic_error if the sizes disagree.
  void add(std::string name, std::vector<std::int64_t> shape, std::vector<double> values);
  void attribute(std::string name, AttributeValue value);

  const std::vector<ResultDataset>& datasets() const { return datasets_; }
  const ResultDataset* find(const std::string& name) const;
  const std::vector<std::pair<std::string, AttributeValue>>& attributes() const { return attributes_; }
  void clear();

 private:
  std::vector<ResultDataset> datasets_;
  std::vector<std::pair<std::string, AttributeValue>> attributes_;
};

/// A job's output that has one line a row of the source (scores, labels, a projection).
struct RowOutput {
  std::string name;
  std::int64_t width = 1;
  bool as_float32 = false;  ///< else float64
};

}  // namespace rowmill
