#include "io/h5_helper/names.hpp"

#include <cstring>
#include <optional>

#include "io/h5_helper/attributes.hpp"

namespace rowmill::h5 {

namespace {

constexpr hssize_t kMaxNames = 1 << 20;
constexpr std::size_t kMaxNameBytes = 4 << 20;  ///< of all together; they go to every rank

std::size_t count_of(hid_t dataset) {
  const Id space(H5Dget_space(dataset), H5Sclose, "names");
  if (H5Sget_simple_extent_ndims(space) != 1) return 0;
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  return count < 0 || count > kMaxNames ? 0 : static_cast<std::size_t>(count);
}

void read_into(hid_t dataset, hid_t type, void* to) {
  must(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to), "names");
}

std::vector<std::string> read_variable(hid_t dataset, hid_t type, std::size_t count) {
  std::vector<char*> pointers(count, nullptr);
  read_into(dataset, type, pointers.data());
  std::vector<std::string> names;
  std::size_t bytes = 0;
  for (const char* name : pointers) {
    names.emplace_back(name == nullptr ? "" : name);
    bytes += names.back().size();
  }
  const Id space(H5Dget_space(dataset), H5Sclose, "names");
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
  if (bytes > kMaxNameBytes) names.clear();
  return names;
}

std::vector<std::string> read_fixed(hid_t dataset, hid_t type, std::size_t size, std::size_t count) {
  if (size == 0 || size > kMaxNameBytes || count > 16 * kMaxNameBytes / size) return {};
  std::string all(count * size, '\0');
  read_into(dataset, type, all.data());
  std::vector<std::string> names;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = all.substr(i * size, size);
    name.resize(std::min(name.size(), std::strlen(name.c_str())));
    bytes += name.size();
    names.push_back(std::move(name));
  }
  if (bytes > kMaxNameBytes) names.clear();
  return names;
}

std::vector<std::string> read_integers(hid_t dataset, std::size_t count) {
  std::vector<long long> values(count);
  read_into(dataset, H5T_NATIVE_LLONG, values.data());
  std::vector<std::string> names;
  for (const long long value : values) names.push_back(std::to_string(value));
  return names;
}

/// A type that delivers only the member that names rows, where compounds have one.
std::optional<Id> index_member(hid_t compound) {
  for (const char* name : {"index", "_index"}) {
    const int member = H5Tget_member_index(compound, name);
    H5Eclear2(H5E_DEFAULT);
    if (member < 0) continue;
    const Id type(H5Tget_member_type(compound, static_cast<unsigned>(member)), H5Tclose, "names");
    if (H5Tget_class(type) != H5T_STRING) continue;
    Id wrapped(H5Tcreate(H5T_COMPOUND, H5Tget_size(type)), H5Tclose, "names");
    must(H5Tinsert(wrapped, name, 0, type), "names");
    return wrapped;
  }
  return {};
}

std::vector<std::string> read_strings(hid_t dataset, hid_t string, hid_t memory_type, std::size_t count) {
  if (H5Tis_variable_str(string) > 0) return read_variable(dataset, memory_type, count);
  return read_fixed(dataset, memory_type, H5Tget_size(string), count);
}

}  // namespace

std::vector<std::string> read_names(hid_t location, const std::string& path) {
  const std::optional<Id> dataset = find_dataset(location, path);
  if (!dataset || !is_self_contained(*dataset)) return {};
  const std::size_t count = count_of(*dataset);
  if (count == 0) return {};
  const Id type(H5Dget_type(*dataset), H5Tclose, "names");
  switch (H5Tget_class(type)) {
    case H5T_STRING:
      return read_strings(*dataset, type, type, count);
    case H5T_INTEGER:
      return read_integers(*dataset, count);
    case H5T_COMPOUND: {
      const std::optional<Id> wrapped = index_member(type);
      if (!wrapped) return {};
      const Id string(H5Tget_member_type(*wrapped, 0), H5Tclose, "names");
      return read_strings(*dataset, string, *wrapped, count);
    }
    default:
      return {};
  }
}

}  // namespace rowmill::h5
