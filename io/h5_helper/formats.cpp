#include "io/h5_helper/formats.hpp"

#include <array>

#include "io/h5_helper/attributes.hpp"
#include "io/h5_helper/groups.hpp"

namespace rowmill::h5 {

namespace {

constexpr std::size_t kMaxLooked = 64;  ///< of the root's objects: clues stand at the top

/// The first of the attributes that the object has.
template <std::size_t n>
const char* first_attribute(hid_t object, const std::array<const char*, n>& names) {
  for (const char* name : names) {
    if (has_attribute(object, name)) return name;
  }
  return nullptr;
}

constexpr std::array kNetcdf = {"_Netcdf4Dimid", "_Netcdf4Coordinates", "_FillValue", "missing_value", "scale_factor",
                                "add_offset",    "valid_range",         "valid_min",  "valid_max",     "_Unsigned"};
constexpr std::array kMatlab = {"MATLAB_class", "MATLAB_empty", "MATLAB_sparse"};

Format format_of_attributes(hid_t object) {
  if (const char* name = first_attribute(object, kMatlab)) {
    return {"matlab", std::string("it has an attribute ") + name};
  }
  if (H5Iget_type(object) == H5I_GROUP) {
    if (const auto sparse = sparse_group(object)) return {sparse->format, sparse->reason};
    if (has_attribute(object, "pandas_type")) return {"pandas", "it has an attribute pandas_type"};
    return {};
  }
  if (const char* name = first_attribute(object, kNetcdf)) {
    return {"netcdf", std::string("it has an attribute ") + name};
  }
  return {};
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Format netcdf_file(hid_t root, const std::string& file_name) {
  if (has_attribute(root, "_NCProperties")) return {"netcdf", "the file has an attribute _NCProperties"};
  const std::string conventions = text_attribute(root, "Conventions").value_or("");
  if (conventions.starts_with("CF-") || conventions.starts_with("COARDS")) {
    return {"netcdf", "the file has an attribute Conventions, \"" + conventions + "\""};
  }
  for (const char* end : {".nc", ".nc4", ".cdf"}) {
    if (ends_with(file_name, end)) return {"netcdf", "its name ends in " + std::string(end)};
  }
  return {};
}

Format loom_file(hid_t root) {
  if (!find_dataset(root, "matrix")) return {};
  if (has_attribute(root, "LOOM_SPEC_VERSION") || find_dataset(root, "attrs/LOOM_SPEC_VERSION")) {
    return {"loom", "the file has LOOM_SPEC_VERSION"};
  }
  if (find_group(root, "row_attrs") && find_group(root, "col_attrs")) {
    return {"loom", "the file has /matrix, /row_attrs and /col_attrs"};
  }
  return {};
}

Format anndata_file(hid_t root) {
  if (text_attribute(root, "encoding-type") == "anndata") return {"anndata", "the file says so in encoding-type"};
  if (find_object(root, "X") && find_object(root, "obs") && find_object(root, "var")) {
    return {"anndata", "the file has /X, /obs and /var"};
  }
  return {};
}

/// By the attributes of what lies at the top.
Format by_top_objects(hid_t root) {
  for (const std::string& name : link_names(root, kMaxLooked)) {
    const std::optional<Id> object = find_object(root, name);
    if (!object) continue;
    Format format = format_of_attributes(*object);
    if (format.name == "hdf5") continue;
    format.reason += " (/" + name + ")";
    return format;
  }
  return {};
}

}  // namespace

Format format_of_file(hid_t file, const std::string& file_name) {
  const std::optional<Id> root = find_group(file, "/");
  if (!root) return {};
  for (Format format : {loom_file(*root), anndata_file(*root), netcdf_file(*root, file_name)}) {
    if (format.name != "hdf5") return format;
  }
  return by_top_objects(*root);
}

Format format_of_object(hid_t file, hid_t object, const std::string& file_name, const std::string& wanted) {
  if (wanted == "hdf5") return {};
  if (wanted != "auto") return {wanted, "--format"};
  Format own = format_of_attributes(object);
  if (own.name != "hdf5") return own;
  Format format = format_of_file(file, file_name);
  // these two know each object by its own attributes
  if (format.name == "matlab" || format.name == "pandas" || format.name == "10x") return {};
  if (format.name == "netcdf" && format.reason.ends_with(")")) return {};
  return format;
}

}  // namespace rowmill::h5
