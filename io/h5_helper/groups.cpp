#include "io/h5_helper/groups.hpp"

#include <algorithm>

#include "io/h5_helper/attributes.hpp"
#include "io/h5_helper/element.hpp"
#include "io/h5_helper/frames.hpp"
#include "io/h5_helper/names.hpp"

namespace rowmill::h5 {

namespace {

/// Two extents, out of an attribute or a data set.
struct Shape {
  hsize_t first = 0, second = 0;
};

hsize_t extent_of(const Number& number) {
  if (number.kind == Number::Kind::floating ||
      (number.kind == Number::Kind::signed_integer && number.as_signed() < 0)) {
    throw Refusal("its shape makes no sense: the file is damaged");
  }
  return number.bits;
}

Shape shape_of_attribute(hid_t group, const char* name) {
  const std::vector<Number> numbers = number_attribute(group, name);
  if (numbers.size() != 2) throw Refusal(std::string("its attribute ") + name + " is no shape of two extents");
  return {extent_of(numbers[0]), extent_of(numbers[1])};
}

hsize_t length_of(hid_t dataset) {
  const Id space(H5Dget_space(dataset), H5Sclose, "shape");
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  return H5Sget_simple_extent_ndims(space) == 1 && count >= 0 ? static_cast<hsize_t>(count) : 0;
}

Shape shape_of_dataset(hid_t group) {
  const std::optional<Id> dataset = find_dataset(group, "shape");
  long long extents[2] = {-1, -1};
  if (!dataset || !is_self_contained(*dataset) || length_of(*dataset) != 2 ||
      H5Dread(*dataset, H5T_NATIVE_LLONG, H5S_ALL, H5S_ALL, H5P_DEFAULT, extents) < 0 || extents[0] < 0 ||
      extents[1] < 0) {
    H5Eclear2(H5E_DEFAULT);
    throw Refusal("its data set shape does not hold two extents: the file is damaged");
  }
  return {static_cast<hsize_t>(extents[0]), static_cast<hsize_t>(extents[1])};
}

std::optional<SparseGroup> anndata_group(hid_t group) {
  for (const auto& [name, shape_name] :
       {std::pair{"encoding-type", "shape"}, std::pair{"h5sparse_format", "h5sparse_shape"}}) {
    const std::string kind = text_attribute(group, name).value_or("");
    if (kind != "csr_matrix" && kind != "csc_matrix" && kind != "csr" && kind != "csc") continue;
    const Shape shape = shape_of_attribute(group, shape_name);
    return SparseGroup{"anndata",
                       std::string("it says ") + kind + " in " + name,
                       shape.first,
                       shape.second,
                       kind.starts_with("csc"),
                       "indptr",
                       "indices",
                       "data"};
  }
  return {};
}

/// Features × barcodes by columns is barcodes × features by rows.
std::optional<SparseGroup> tenx_group(hid_t group) {
  for (const char* name : {"barcodes", "data", "indices", "indptr", "shape"}) {
    if (!find_dataset(group, name)) return {};
  }
  const Shape shape = shape_of_dataset(group);
  return SparseGroup{"10x",        "it holds barcodes, data, indices, indptr and shape",
                     shape.second, shape.first,
                     false,        "indptr",
                     "indices",    "data"};
}

std::optional<SparseGroup> matlab_group(hid_t group) {
  if (!has_attribute(group, "MATLAB_sparse")) return {};
  const std::vector<Number> rows = number_attribute(group, "MATLAB_sparse");
  const std::optional<Id> pointers = find_dataset(group, "jc");
  if (rows.size() != 1 || !pointers || length_of(*pointers) == 0) {
    throw Refusal("it is no whole sparse matrix of MATLAB: the file is damaged");
  }
  SparseGroup sparse{
      "matlab", "it has an attribute MATLAB_sparse", extent_of(rows[0]), length_of(*pointers) - 1, true, "jc", "ir",
      "data"};
  // MATLAB leaves them out of matrices without entries
  if (!find_dataset(group, "ir") && !find_dataset(group, "data")) sparse.indices = sparse.values = "";
  return sparse;
}

/// Where the names of an AnnData matrix' columns are.
std::string anndata_names(hid_t file, const std::string& path) {
  std::string var;
  if (path == "/X" || path.starts_with("/layers/")) var = "/var";
  if (path == "/raw/X" || path == "/raw.X") var = path.substr(0, 5) + "var";
  if (var.empty()) return "";
  const std::optional<Id> group = find_group(file, var);
  return group ? var + "/" + text_attribute(*group, "_index").value_or("_index") : var;
}

std::vector<std::string> names_in_order(hid_t location, std::initializer_list<std::string> places) {
  for (const std::string& place : places) {
    if (std::vector<std::string> names = read_names(location, place); !names.empty()) return names;
  }
  return {};
}

std::vector<std::string> names_of_columns(hid_t file, hid_t object, const std::string& path,
                                          const std::string& format) {
  if (format == "anndata") {
    const std::string place = anndata_names(file, path);
    if (place.empty()) return {};
    return names_in_order(file, {place, place + "/values"});  // the second of strings that may be missing
  }
  if (format == "10x") return names_in_order(object, {"features/name", "features/id", "gene_names", "genes"});
  if (format == "loom") {
    return names_in_order(file, {"/row_attrs/Gene", "/row_attrs/gene_names", "/row_attrs/Accession"});
  }
  return {};
}

}  // namespace

void add_names(hid_t file, hid_t object, const std::string& path, const std::string& format, hsize_t columns,
               nlohmann::json& json) {
  try {
    std::vector<std::string> names = names_of_columns(file, object, path, format);
    if (names.size() == columns) {
      json["names"] = std::move(names);
    } else if (!names.empty()) {
      json["warnings"].push_back("its " + std::to_string(names.size()) + " names of columns are left out: it has " +
                                 std::to_string(columns) + " columns");
    }
  } catch (const Refusal& e) {
    json["warnings"].push_back(std::string("its column names cannot be read: ") + e.what());
  }
}

std::optional<SparseGroup> sparse_group(hid_t group) {
  if (auto sparse = anndata_group(group)) return sparse;
  if (auto sparse = matlab_group(group)) return sparse;
  return tenx_group(group);
}

namespace {

nlohmann::json plan_sparse(hid_t file, hid_t group, const std::string& path, const SparseGroup& sparse, int axis) {
  if (axis < 0 || axis > 1) throw WrongUsage("it has no axis " + std::to_string(axis) + ": it has two");
  nlohmann::json json = {
      {"group", "sparse"},
      {"by_columns", sparse.by_columns != (axis == 1)},
      {"shape", {axis == 1 ? sparse.columns : sparse.rows, axis == 1 ? sparse.rows : sparse.columns}},
      {"pointers", sparse.pointers},
      {"indices", sparse.indices},
      {"values", sparse.values},
      {"warnings", nlohmann::json::array()}};
  if (axis == 0) add_names(file, group, path, sparse.format, sparse.columns, json);
  return json;
}

}  // namespace

std::optional<nlohmann::json> plan_group(hid_t file, hid_t group, const std::string& path, const Format& format,
                                         int axis) {
  std::optional<nlohmann::json> json;
  if (const auto sparse = sparse_group(group); sparse && format.name == sparse->format) {
    json = plan_sparse(file, group, path, *sparse, axis);
  } else if (format.name == "pandas") {
    json = plan_frame(group, axis);
  } else if (format.name == "matlab" && text_attribute(group, "MATLAB_class")) {
    throw Refusal("it is a MATLAB " + *text_attribute(group, "MATLAB_class") + ": name a numeric field of it");
  }
  if (!json) return json;
  (*json)["format"] = format.name;
  (*json)["reason"] = format.reason;
  return json;
}

std::optional<nlohmann::json> list_group(hid_t group, const std::string& path) {
  nlohmann::json line = {{"path", path}, {"type", "?"}, {"shape", "?"}, {"storage", "?"}, {"needs_filter", false}};
  try {
    if (const auto sparse = sparse_group(group)) {
      line["shape"] = std::to_string(sparse->rows) + " x " + std::to_string(sparse->columns);
      line["storage"] = sparse->by_columns ? "sparse by columns" : "sparse by rows";
      const std::optional<Id> values = sparse->values.empty() ? std::nullopt : find_dataset(group, sparse->values);
      if (values) {
        const Id type(H5Dget_type(*values), H5Tclose, "datatype");
        const Element element = classify(type);
        line["type"] = element.text;
        line["why_not"] = element.numeric ? "" : "its type is not numeric: " + element.text;
      } else {
        line["why_not"] = sparse->values.empty() ? "" : "its values are missing";
      }
    } else if (!list_frame(group, line)) {
      return {};
    }
  } catch (const Refusal& e) {
    line["why_not"] = e.what();
  }
  line["numeric"] = line["why_not"].get_ref<const std::string&>().empty();
  return line;
}

}  // namespace rowmill::h5
