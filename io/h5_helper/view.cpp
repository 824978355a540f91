#include "io/h5_helper/view.hpp"

#include "io/h5_helper/attributes.hpp"
#include "io/h5_helper/groups.hpp"
#include "io/h5_helper/netcdf.hpp"

namespace rowmill::h5 {

namespace {

bool counts_from_the_end(const Format& format, std::size_t axes) {
  return format.name == "matlab" || (format.name == "loom" && axes == 2);
}

/// Of an empty array MATLAB stores the size in place of values.
bool is_empty_in_matlab(hid_t dataset) {
  const std::vector<Number> empty = number_attribute(dataset, "MATLAB_empty");
  return !empty.empty() && empty[0].bits != 0;
}

std::string why_not_in_matlab(hid_t dataset) {
  const std::string kind = text_attribute(dataset, "MATLAB_class").value_or("");
  if (is_empty_in_matlab(dataset)) return "it is an empty MATLAB array: the numbers that are stored are its size";
  if (has_attribute(dataset, "MATLAB_object_decode")) {
    return "it is a MATLAB object (" + kind + "), not an array of numbers: save its numbers as one";
  }
  if (kind == "char") return "it is MATLAB text (char)";
  if (kind == "cell") return "it is a MATLAB cell array: save its numbers as an array";
  return "";
}

hsize_t columns_of(const OpenedDataset& dataset, int axis) {
  hsize_t columns = 1;
  for (std::size_t i = 0; i < dataset.shape().size(); ++i) {
    if (static_cast<int>(i) != axis) columns *= dataset.shape()[i];
  }
  return columns;
}

}  // namespace

int stored_axis(const Format& format, const OpenedDataset& dataset, int axis) {
  const std::size_t axes = dataset.shape().size();
  return counts_from_the_end(format, axes) ? static_cast<int>(axes) - 1 - axis : axis;
}

std::string why_not_in(const Format& format, hid_t dataset) {
  if (format.name == "matlab") return why_not_in_matlab(dataset);
  if (format.name == "10x") {
    return "it is a data set, a matrix of 10x Genomics is a group of several: name the group, or use --format hdf5";
  }
  return "";
}

void apply_view(hid_t file, const OpenedDataset& dataset, const std::string& path, const Format& format, int axis,
                nlohmann::json& json) {
  const int stored = stored_axis(format, dataset, axis);
  json["format"] = format.name;
  json["reason"] = format.reason;
  json["axis"] = stored;
  if (format.name == "netcdf") add_netcdf_conventions(dataset, json);
  if (format.name == "hdf5" && has_netcdf_fill(dataset)) {
    json["warnings"].push_back(
        "its fill value, 9.96921e+36, is that of netCDF: values equal to it are read as numbers, with --format netcdf "
        "as missing");
  }
  if (format.name != "matlab" && is_empty_in_matlab(dataset.id())) {
    json["warnings"].push_back("it is an empty MATLAB array: the numbers that are read are its size");
  }
  if (format.name == "loom" && dataset.shape().size() == 2 && axis == 0) {
    json["warnings"].push_back(
        "is read as loom: its cells are rows, its genes columns (axis 1 of the data set is rows)");
  }
  if (dataset.is_member() && dataset.shape().size() == 1) json["names"] = {path.substr(path.rfind('/') + 1)};
  if (axis == 0) add_names(file, dataset.id(), path, format.name, columns_of(dataset, stored), json);
}

}  // namespace rowmill::h5
