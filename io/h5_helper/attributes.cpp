#include "io/h5_helper/attributes.hpp"

namespace rowmill::h5 {

namespace {

constexpr hsize_t kMaxAttributeBytes = 1 << 16;

/// Without a value if there is none of a size that anyone means.
std::optional<Id> open_attribute(hid_t object, const char* name) {
  if (!has_attribute(object, name)) return {};
  const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
  if (id < 0 || H5Aget_storage_size(id) > kMaxAttributeBytes) {
    if (id >= 0) H5Aclose(id);
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
  return Id(id, H5Aclose, "attribute");
}

hssize_t elements_of(hid_t attribute) {
  const Id space(H5Aget_space(attribute), H5Sclose, "attribute");
  return H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : H5Sget_simple_extent_npoints(space);
}

std::string without_padding(std::string text) {
  text.resize(text.find_last_not_of(std::string(" \0", 2)) + 1);
  return text.substr(0, text.find('\0'));
}

template <typename T>
std::vector<Number> read_numbers(hid_t attribute, hid_t memory_type, std::size_t count) {
  std::vector<T> values(count);
  std::vector<Number> numbers;
  if (H5Aread(attribute, memory_type, values.data()) >= 0) {
    for (const T value : values) numbers.push_back(Number::of(value));
  }
  H5Eclear2(H5E_DEFAULT);
  return numbers;
}

herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

struct Names {
  std::vector<std::string> found;
  std::size_t most;
};

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* to) {
  auto* names = static_cast<Names*>(to);
  if (names->found.size() >= names->most) return 1;
  names->found.emplace_back(name);
  return 0;
}

std::optional<Id> find_kind(hid_t location, const std::string& path, H5I_type_t kind) {
  std::optional<Id> object = find_object(location, path);
  if (object && H5Iget_type(*object) != kind) object.reset();
  return object;
}

}  // namespace

bool has_attribute(hid_t object, const char* name) {
  const bool there = H5Aexists(object, name) > 0;
  H5Eclear2(H5E_DEFAULT);
  return there;
}

std::optional<std::string> text_attribute(hid_t object, const char* name) {
  const std::optional<Id> attribute = open_attribute(object, name);
  if (!attribute || elements_of(*attribute) != 1) return {};
  const Id type(H5Aget_type(*attribute), H5Tclose, "attribute");
  if (H5Tget_class(type) != H5T_STRING) return {};
  std::optional<std::string> text;
  if (H5Tis_variable_str(type) > 0) {
    char* value = nullptr;
    if (H5Aread(*attribute, type, &value) >= 0 && value != nullptr) text = value;
    if (value != nullptr) H5free_memory(value);
  } else {
    std::string bytes(H5Tget_size(type), '\0');
    if (H5Aread(*attribute, type, bytes.data()) >= 0) text = without_padding(std::move(bytes));
  }
  H5Eclear2(H5E_DEFAULT);
  return text;
}

std::vector<Number> number_attribute(hid_t object, const char* name) {
  const std::optional<Id> attribute = open_attribute(object, name);
  if (!attribute) return {};
  const hssize_t count = elements_of(*attribute);
  if (count < 1 || static_cast<hsize_t>(count) > kMaxAttributeBytes) return {};
  const Id type(H5Aget_type(*attribute), H5Tclose, "attribute");
  const H5T_class_t kind = H5Tget_class(type);
  const auto n = static_cast<std::size_t>(count);
  if (kind == H5T_FLOAT) return read_numbers<double>(*attribute, H5T_NATIVE_DOUBLE, n);
  if (kind != H5T_INTEGER) return {};
  if (H5Tget_sign(type) == H5T_SGN_2) return read_numbers<std::int64_t>(*attribute, H5T_NATIVE_INT64, n);
  return read_numbers<std::uint64_t>(*attribute, H5T_NATIVE_UINT64, n);
}

std::optional<Id> find_object(hid_t location, const std::string& path) {
  const Id access(H5Pcreate(H5P_LINK_ACCESS), H5Pclose, "access list");
  must(H5Pset_elink_cb(access, refuse_link, nullptr), "link guard");
  const hid_t id = H5Oopen(location, path.c_str(), access);
  H5Eclear2(H5E_DEFAULT);
  if (id < 0) return {};
  return Id(id, H5Oclose, "object");
}

std::optional<Id> find_group(hid_t location, const std::string& path) {
  return find_kind(location, path, H5I_GROUP);
}

std::optional<Id> find_dataset(hid_t location, const std::string& path) {
  return find_kind(location, path, H5I_DATASET);
}

bool is_self_contained(hid_t dataset) {
  const Id creation(H5Dget_create_plist(dataset), H5Pclose, "creation list");
  const bool here = H5Pget_external_count(creation) == 0 && H5Pget_layout(creation) != H5D_VIRTUAL;
  H5Eclear2(H5E_DEFAULT);
  return here;
}

std::vector<std::string> link_names(hid_t group, std::size_t most) {
  Names names{{}, most};
  hsize_t position = 0;
  H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &position, collect_name, &names);
  H5Eclear2(H5E_DEFAULT);
  return std::move(names.found);
}

}  // namespace rowmill::h5
