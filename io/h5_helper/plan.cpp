#include "io/h5_helper/plan.hpp"

#include <algorithm>

#include "io/h5_helper/chunks.hpp"
#include "io/h5_helper/filters.hpp"
#include "io/h5_helper/table.hpp"
#include "io/h5_helper/unwritten.hpp"

namespace rowmill::h5 {

namespace {

std::string by(const std::vector<hsize_t>& extents) {
  std::string text;
  for (const hsize_t extent : extents) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

/// The bytes of one element that was never written, in hexadecimal.
std::string fill_text(const OpenedDataset& dataset) {
  const std::size_t bytes = size_of(dataset.element().type);
  std::vector<unsigned char> value(std::max<std::size_t>(bytes, H5Tget_size(dataset.datatype())));
  if (!leaves_buffer(dataset.creation()) &&
      !dataset.is_member()) {  // HDF5 reads columns of tables with their fill values
    const Id type = memory_type(dataset.datatype(), dataset.element());
    must(H5Pget_fill_value(dataset.creation(), type, value.data()), "fill value");
  }
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += "0123456789abcdef"[value[i] >> 4];
    text += "0123456789abcdef"[value[i] & 15];
  }
  return text;
}

/// How storage chunks are read: at their addresses, fetched by this helper where there are too many to list, or by
/// HDF5.
void choose_chunk_way(hid_t file, const OpenedDataset& dataset, PlanAnswer& answer) {
  auto& json = answer.json;
  const Id space(H5Dget_space(dataset.id()), H5Sclose, "shape");
  hsize_t stored = 0;
  must(H5Dget_num_chunks(dataset.id(), space, &stored), "storage chunks");
  json["stored_chunks"] = static_cast<std::int64_t>(stored);
  if (stored == 0) {
    json["way"] = "fill";
    return;
  }
  if (!is_decoded_here(dataset)) return;
  const ChunkLayout layout(dataset);
  if (!layout.can_be_numbered()) return;
  unsigned options = 0;
  must(H5Pget_chunk_opts(dataset.creation(), &options), "storage chunks");
  json["edges_unfiltered"] = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  json["filters"] = nlohmann::json::array();
  for (const Filter& filter : filters_of(dataset.creation())) {
    json["filters"].push_back({filter.step.id, filter.step.values});
  }
  const bool listed = dataset.in_this_file() && list_chunks(file, dataset, layout, stored, answer.chunks);
  json["way"] = listed ? "chunks" : "fetched";
}

void choose_way(hid_t file, const OpenedDataset& dataset, PlanAnswer& answer) {
  auto& json = answer.json;
  json["way"] = "helper";
  if (H5Pget_external_count(dataset.creation()) > 0 || dataset.is_member()) return;
  if (dataset.layout() == H5D_CHUNKED) return choose_chunk_way(file, dataset, answer);
  if (dataset.layout() != H5D_CONTIGUOUS) return;
  const haddr_t offset = H5Dget_offset(dataset.id());
  H5Eclear2(H5E_DEFAULT);
  if (offset == HADDR_UNDEF) {
    json["way"] = "fill";
  } else if (dataset.in_this_file() && !dataset.element().convert) {
    json["way"] = "contiguous";
    json["offset"] = static_cast<std::int64_t>(offset);
  }
}

/// Elements that virtual sources are mapped to; those that lie under several count for each.
hssize_t mapped_elements(hid_t creation) {
  std::size_t mappings = 0;
  must(H5Pget_virtual_count(creation, &mappings), "virtual sources");
  hssize_t elements = 0;
  for (std::size_t k = 0; k < mappings; ++k) {
    const Id space(H5Pget_virtual_vspace(creation, k), H5Sclose, "virtual sources");
    elements += H5Sget_select_npoints(space);
  }
  return elements;
}

hssize_t elements_of(const OpenedDataset& dataset) {
  const Id space(H5Dget_space(dataset.id()), H5Sclose, "shape");
  return H5Sget_simple_extent_npoints(space);
}

void add_warnings(const OpenedDataset& dataset, const std::vector<Filter>& filters, nlohmann::json& warnings) {
  for (const Filter& filter : filters) {
    if (filter.id == H5Z_FILTER_SCALEOFFSET && is_floating(dataset.element().type.dtype)) {
      warnings.push_back(
          "filter 6 (scale-offset) on floating-point values is lossy: what is stored is read, NaN were lost");
    }
  }
  H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
  must(H5Dget_space_status(dataset.id(), &status), "storage");
  if (leaves_buffer(dataset.creation()) && status != H5D_SPACE_STATUS_ALLOCATED) {
    warnings.push_back("parts that were never written have no fill value: they are read as 0");
  }
  if (dataset.layout() == H5D_VIRTUAL && mapped_elements(dataset.creation()) < elements_of(dataset))
    warnings.push_back("parts that no virtual source is mapped to hold the fill value");
}

/// What `rowmill generate` writes beside its data.
bool has_planted(hid_t file) {
  const bool there = H5Lexists(file, "planted", H5P_DEFAULT) > 0 && H5Lexists(file, "planted/mean", H5P_DEFAULT) > 0;
  H5Eclear2(H5E_DEFAULT);
  return there;
}

}  // namespace

std::string shape_text(const OpenedDataset& dataset) {
  if (dataset.space_class() == H5S_NULL) return "null";
  return dataset.shape().empty() ? "scalar" : by(dataset.shape());
}

std::string storage_text(const OpenedDataset& dataset) {
  if (H5Pget_external_count(dataset.creation()) > 0) return "external";
  if (dataset.layout() == H5D_COMPACT) return "compact";
  if (dataset.layout() == H5D_VIRTUAL) return "virtual";
  if (dataset.layout() != H5D_CHUNKED) return "contiguous";
  std::string text = "chunked " + by(ChunkLayout(dataset).extents());
  const char* before = ", ";
  for (const Filter& filter : filters_of(dataset.creation())) {
    text += before + filter.text;
    before = " + ";
  }
  return text;
}

std::string why_no_rows(const OpenedDataset& dataset) {
  if (!dataset.element().numeric) {
    const std::string text = "its type is not numeric: " + dataset.element().text;
    const bool table = dataset.element().text.starts_with("compound") && dataset.shape().size() == 1;
    const std::string column = table ? numeric_member(dataset.datatype()) : "";
    return column.empty() ? text : text + "; its columns can be named, as in :/TABLE/" + column;
  }
  if (dataset.space_class() == H5S_NULL) return "it is empty (a null data space of " + dataset.element().text + ")";
  if (dataset.shape().empty()) return "it is a scalar (" + dataset.element().text + "), it has no rows";
  return "";
}

std::string missing_filter(const OpenedDataset& dataset) {
  const bool decoded_here = is_decoded_here(dataset);
  for (const Filter& filter : filters_of(dataset.creation())) {
    if (!filter.available && !decoded_here) {
      return "it needs filter " + std::to_string(filter.id) + " (" + filter.text +
             "), which is not built in: write it again with gzip (h5repack -f GZIP=4)";
    }
  }
  return "";
}

std::string why_not(const OpenedDataset& dataset) {
  const std::string no_rows = why_no_rows(dataset);
  return no_rows.empty() ? missing_filter(dataset) : no_rows;
}

PlanAnswer make_plan(hid_t file, const OpenedDataset& dataset) {
  if (const std::string why = why_not(dataset); !why.empty()) throw Refusal(why);
  PlanAnswer answer;
  auto& json = answer.json;
  json["shape"] = dataset.shape();
  json["dtype"] = static_cast<int>(dataset.element().type.dtype);
  json["swapped"] = dataset.element().type.swapped;
  json["stored_type"] = dataset.element().text;
  json["storage"] = storage_text(dataset);
  json["fill"] = fill_text(dataset);
  json["planted"] = has_planted(file);
  json["warnings"] = nlohmann::json::array();
  if (dataset.layout() == H5D_CHUNKED) json["chunk"] = ChunkLayout(dataset).extents();
  choose_way(file, dataset, answer);
  add_warnings(dataset, filters_of(dataset.creation()), json["warnings"]);
  return answer;
}

}  // namespace rowmill::h5
