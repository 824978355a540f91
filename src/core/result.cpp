#include "core/result.hpp"

#include <algorithm>
#include <stdexcept>

namespace rowmill {

void ResultSink::add(std::string name, std::vector<std::int64_t> shape, std::vector<double> values) {
  std::int64_t size = 1;
  for (const std::int64_t n : shape) size *= n;
  if (size != static_cast<std::int64_t>(values.size())) throw std::logic_error("size of result " + name);
  datasets_.push_back({std::move(name), std::move(shape), std::move(values)});
}

void ResultSink::attribute(std::string name, AttributeValue value) {
  const auto same = [&](const auto& entry) { return entry.first == name; };
  const auto found = std::find_if(attributes_.begin(), attributes_.end(), same);
  if (found != attributes_.end()) {
    found->second = std::move(value);
  } else {
    attributes_.emplace_back(std::move(name), std::move(value));
  }
}

const ResultDataset* ResultSink::find(const std::string& name) const {
  for (const auto& dataset : datasets_) {
    if (dataset.name == name) return &dataset;
  }
  return nullptr;
}

void ResultSink::clear() {
  datasets_.clear();
  attributes_.clear();
}

}  // namespace rowmill
