#include "io/h5_helper/filters.hpp"

#include <algorithm>
#include <array>

namespace rowmill::h5 {

namespace {

std::string name_of_filter(H5Z_filter_t id, const char* stored) {
  const std::string known = rowmill::name_of_filter(static_cast<std::uint32_t>(id));
  if (!known.empty()) return known;
  return stored[0] == '\0' ? "unknown" : stored;
}

}  // namespace

std::vector<Filter> filters_of(hid_t creation) {
  std::vector<Filter> filters;
  const int count = must(H5Pget_nfilters(creation), "filters");
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::array<unsigned, 64> values = {};
    std::size_t value_count = values.size();
    std::array<char, 64> name = {};
    const H5Z_filter_t id = must(H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &value_count, values.data(),
                                                name.size() - 1, name.data(), &config),
                                 "filters");
    Filter filter{id, name_of_filter(id, name.data()), H5Zfilter_avail(id) > 0, {static_cast<std::uint32_t>(id), {}}};
    filter.step.values.assign(values.begin(), values.begin() + std::min(value_count, values.size()));
    H5Eclear2(H5E_DEFAULT);
    if (id == H5Z_FILTER_DEFLATE && value_count > 0) filter.text.append(" ").append(std::to_string(values[0]));
    filters.push_back(std::move(filter));
  }
  return filters;
}

}  // namespace rowmill::h5
