#include "io/h5_helper/companions.hpp"

#include <map>
#include <string>

#include "core/units.hpp"
#include "io/h5_helper/folder.hpp"
#include "io/h5_helper/opened.hpp"

namespace rowmill::h5 {

namespace {

constexpr int kMaxDepth = 8;

std::string text_of(ssize_t (*get)(hid_t, std::size_t, char*, std::size_t), hid_t creation, std::size_t index) {
  const ssize_t length = must(get(creation, index, nullptr, 0), "virtual source");
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  must(get(creation, index, text.data(), text.size()), "virtual source");
  text.pop_back();
  return text;
}

bool is_pattern(const std::string& name) {
  for (std::size_t at = name.find('%'); at != std::string::npos; at = name.find('%', at + 1)) {
    if (at + 1 < name.size() && name[at + 1] == '%') {
      ++at;
    } else {
      return true;
    }
  }
  return false;
}

/// The part of the source that is mapped must be there.
void check_extent(hid_t creation, std::size_t index, hid_t dataset, const std::string& name) {
  const Id wanted(H5Pget_virtual_srcspace(creation, index), H5Sclose, "selection in a virtual source");
  const Id held(H5Dget_space(dataset), H5Sclose, "shape of a virtual source");
  const int axes = must(H5Sget_simple_extent_ndims(held), "shape of a virtual source");
  if (H5Sget_select_type(wanted) == H5S_SEL_ALL) {
    // all of a source whose shape the mapping does not keep: as many elements as the mapping fills
    const Id filled(H5Pget_virtual_vspace(creation, index), H5Sclose, "mapping of a virtual source");
    const hssize_t elements = H5Sget_select_npoints(filled);
    H5Eclear2(H5E_DEFAULT);
    if (elements >= 0 && elements > H5Sget_simple_extent_npoints(held)) {
      throw Refusal("its virtual source \"" + name + "\" is smaller than the part that is mapped");
    }
    return;
  }
  if (H5Sget_select_type(wanted) != H5S_SEL_HYPERSLABS || axes < 1) return;
  if (H5Sget_simple_extent_ndims(wanted) != axes) throw Refusal("its virtual source \"" + name + "\" has other axes");
  std::vector<hsize_t> low(static_cast<std::size_t>(axes)), high(low), shape(low);
  must(H5Sget_simple_extent_dims(held, shape.data(), nullptr), "shape of a virtual source");
  if (H5Sget_select_bounds(wanted, low.data(), high.data()) < 0) {
    H5Eclear2(H5E_DEFAULT);  // an unlimited selection ends where the source ends
    return;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (high[i] != H5S_UNLIMITED && high[i] >= shape[i]) {
      throw Refusal("its virtual source \"" + name + "\" is smaller than the part that is mapped");
    }
  }
}

herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

void check_source(hid_t file, hid_t creation, std::size_t index, const std::string& dataset_name,
                  const std::string& file_name, int depth) {
  const std::string name = file_name + ":/" + dataset_name;
  const Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "access list");
  must(H5Pset_elink_cb(access, refuse_link, nullptr), "link guard");
  const hid_t id = H5Dopen2(file, dataset_name.c_str(), access);
  if (id < 0) {
    H5Eclear2(H5E_DEFAULT);
    throw Refusal("its virtual source \"" + name +
                  "\" is not there (or lies behind an external link): HDF5 would give " + "fill values instead");
  }
  const Id dataset(id, H5Dclose, "virtual source");
  check_extent(creation, index, dataset, name);
  const Id source_creation(H5Dget_create_plist(dataset), H5Pclose, "virtual source");
  const Id datatype(H5Dget_type(dataset), H5Tclose, "virtual source");
  const Id space(H5Dget_space(dataset), H5Sclose, "virtual source");
  std::vector<hsize_t> shape(static_cast<std::size_t>(must(H5Sget_simple_extent_ndims(space), "virtual source")));
  if (!shape.empty()) must(H5Sget_simple_extent_dims(space, shape.data(), nullptr), "virtual source");
  check_external(source_creation, shape, H5Tget_size(datatype));
  if (H5Pget_layout(source_creation) == H5D_VIRTUAL) check_virtual(file, source_creation, depth + 1);
}

}  // namespace

void check_external(hid_t creation, const std::vector<hsize_t>& shape, std::size_t element_bytes) {
  const int count = H5Pget_external_count(creation);
  if (count <= 0) {
    H5Eclear2(H5E_DEFAULT);
    return;
  }
  std::uint64_t needed = element_bytes;
  for (const hsize_t extent : shape) {
    if (__builtin_mul_overflow(needed, extent, &needed)) throw Refusal("its shape is larger than any storage");
  }
  for (int i = 0; i < count && needed > 0; ++i) {
    char name[4096] = "";
    off_t offset = 0;
    hsize_t bytes = 0;
    must(H5Pget_external(creation, static_cast<unsigned>(i), sizeof name - 1, name, &offset, &bytes), "external file");
    const auto companion = find_companion(name);
    if (!companion) throw Refusal(std::string("its external raw file \"") + name + "\" is not there");
    const std::uint64_t used = bytes == H5F_UNLIMITED || bytes > needed ? needed : bytes;
    if (offset < 0 || offset > companion->bytes || used > static_cast<std::uint64_t>(companion->bytes - offset)) {
      throw Refusal(std::string("its external raw file \"") + name + "\" holds only " +
                    counted(companion->bytes, "byte") + ": HDF5 would give zeros for the rest");
    }
    needed -= used;
  }
  if (needed > 0) throw Refusal("its external raw files are smaller than the data set");
}

std::string virtual_file(hid_t creation, std::size_t i) {
  return text_of(H5Pget_virtual_filename, creation, i);
}

void check_virtual(hid_t file, hid_t creation, int depth) {
  if (depth > kMaxDepth) throw Refusal("its virtual sources are virtual themselves, too many times over");
  std::size_t count = 0;
  must(H5Pget_virtual_count(creation, &count), "virtual sources");
  std::map<std::string, Id> files;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string file_name = virtual_file(creation, i);
    const std::string dataset_name = text_of(H5Pget_virtual_dsetname, creation, i);
    if (is_pattern(file_name) || is_pattern(dataset_name)) {
      throw Refusal("its virtual sources are named by a pattern (\"" + file_name +
                    "\"), which is not read here: make a " + "virtual data set that names each source");
    }
    if (file_name == ".") {
      check_source(file, creation, i, dataset_name, file_name, depth);
      continue;
    }
    if (!files.contains(file_name)) {
      const auto companion = find_companion(file_name);
      if (!companion) {
        throw Refusal("its virtual source \"" + file_name + "\" is not there: HDF5 would give fill values instead");
      }
      if (files.size() >= 64) files.clear();
      try {
        files.emplace(file_name, open_file(companion->path));
      } catch (const Refusal& e) {
        throw Refusal("its virtual source \"" + file_name + "\": " + e.what());
      }
    }
    check_source(files.at(file_name), creation, i, dataset_name, file_name, depth);
  }
}

}  // namespace rowmill::h5
