#include "io/h5_helper/opened.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "io/h5_helper/companions.hpp"
#include "io/h5_helper/folder.hpp"
#include "io/h5_helper/table.hpp"

namespace rowmill::h5 {

namespace {

/// External links that lead out of the file's folder are not followed; why is kept in `refused`.
struct LinkGuard {
  std::string refused;
};

herr_t guard_link(const char*, const char*, const char* file, const char*, unsigned*, hid_t, void* data) {
  auto* guard = static_cast<LinkGuard*>(data);
  try {
    if (find_companion(file)) return 0;
    guard->refused = std::string("an external link leads to \"") + file + "\", which is not there";
  } catch (const std::exception& e) {
    guard->refused = e.what();
  }
  return -1;
}

/// Is there anything by that name, be it a link that leads nowhere? Each group on the way is looked at.
bool has_link(hid_t file, const std::string& path, hid_t access) {
  for (std::size_t at = path.find_first_not_of('/'); at != std::string::npos; at = path.find_first_not_of('/', at)) {
    at = std::min(path.find('/', at), path.size());
    const htri_t there = H5Lexists(file, path.substr(0, at).c_str(), access);
    H5Eclear2(H5E_DEFAULT);
    if (there <= 0) return false;
  }
  return true;
}

Id open_guarded(hid_t file, const std::string& path, hid_t access, const LinkGuard& guard) {
  // an error here is told by the guard or by HDF5's own words
  const hid_t id = H5Oopen(file, path.c_str(), access);
  if (id < 0 && !guard.refused.empty()) throw Refusal(guard.refused);
  if (id < 0) {
    const std::string words = error_text();
    if (!has_link(file, path, access)) throw NoDataset("there is nothing of that name", "/");
    throw Refusal("it cannot be opened: " + words);
  }
  Id object(id, H5Oclose, "it cannot be opened");
  return object;
}

Id open_object(hid_t file, const std::string& path, hid_t access, const LinkGuard& guard) {
  Id object = open_guarded(file, path, access, guard);
  switch (H5Iget_type(object)) {
    case H5I_DATASET:
      return object;
    case H5I_GROUP:
      throw NoDataset("it is a group, not a data set: name a data set in it", path);
    default:
      throw Refusal("it is a named datatype, not a data set");
  }
}

haddr_t file_number(hid_t object) {
  H5O_info_t info;
  must(H5Oget_info2(object, &info, H5O_INFO_BASIC), "object information");
  return info.fileno;
}

/// HDF5 tells of a file that is too short by numbers of its own.
std::string truncation_in(const std::string& words) {
  unsigned long long bytes = 0, base = 0, end = 0;
  const std::size_t at = words.find("truncated file: eof = ");
  if (at == std::string::npos ||
      std::sscanf(words.c_str() + at, "truncated file: eof = %llu, sblock->base_addr = %llu, stored_eof = %llu", &bytes,
                  &base, &end) != 3) {
    return {};
  }
  return "is truncated: " + std::to_string(bytes) + " of " + std::to_string(base + end) +
         " bytes are there: get the whole file";
}

}  // namespace

Id open_file(const std::string& path) {
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file access list");
  must(H5Pset_fapl_sec2(access), "file driver");
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (id >= 0) return Id(id, H5Fclose, "");
  const std::string words = error_text();
  if (::access(path.c_str(), F_OK) != 0) throw Refusal("is not there any more: leave it in its place while it is read");
  if (const std::string cut = truncation_in(words); !cut.empty()) throw Refusal(cut);
  throw Refusal("HDF5 cannot open the file: " + words);
}

Id open_any(hid_t file, const std::string& path) {
  LinkGuard guard;
  const Id access(H5Pcreate(H5P_LINK_ACCESS), H5Pclose, "access list");
  must(H5Pset_elink_cb(access, guard_link, &guard), "link guard");
  const std::optional<TableColumn> column = table_column(file, path);
  return open_guarded(file, column ? column->table : path, access, guard);
}

void OpenedDataset::open_with_cache() {
  LinkGuard guard;
  const Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "access list");
  must(H5Pset_elink_cb(access, guard_link, &guard), "link guard");
  must(H5Pset_chunk_cache(access, static_cast<std::size_t>(cache_.slots), static_cast<std::size_t>(cache_.bytes), 1.0),
       "chunk cache");
  const hid_t id = H5Dopen2(file_, path_.c_str(), access);
  if (id < 0 && !guard.refused.empty()) throw Refusal(guard.refused);
  id_ = Id(id, H5Dclose, "it cannot be opened");
}

void OpenedDataset::reopen() {
  { const Id closed = std::move(id_); }
  open_with_cache();
}

OpenedDataset::OpenedDataset(hid_t file, const std::string& name, ChunkCache cache) : file_(file), cache_(cache) {
  const std::optional<TableColumn> column = table_column(file, name);
  path_ = column ? column->table : name;
  {
    LinkGuard guard;
    const Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "access list");
    must(H5Pset_elink_cb(access, guard_link, &guard), "link guard");
    // closed again before it is opened with a cache of its own: HDF5 shares what is open, with the cache it has
    in_this_file_ = file_number(open_object(file, path_, access, guard)) == file_number(file);
  }
  open_with_cache();
  creation_ = Id(H5Dget_create_plist(id_), H5Pclose, "creation list");
  datatype_ = Id(H5Dget_type(id_), H5Tclose, "datatype");
  element_ = classify(datatype_);
  const Id space(H5Dget_space(id_), H5Sclose, "shape");
  space_class_ = H5Sget_simple_extent_type(space);
  const int axes = must(H5Sget_simple_extent_ndims(space), "shape");
  shape_.resize(static_cast<std::size_t>(axes));
  if (axes > 0) must(H5Sget_simple_extent_dims(space, shape_.data(), nullptr), "shape");
  layout_ = H5Pget_layout(creation_);
  if (layout_ == H5D_LAYOUT_ERROR) throw Refusal("its layout is unknown: " + error_text());
  check_external(creation_, shape_, H5Tget_size(datatype_));
  if (layout_ == H5D_VIRTUAL) check_virtual(file, creation_);
  if (column) narrow_to(column->member);
}

void OpenedDataset::narrow_to(const std::string& member) {
  const int index = must(H5Tget_member_index(datatype_, member.c_str()), "column of a table");
  Id type(H5Tget_member_type(datatype_, static_cast<unsigned>(index)), H5Tclose, "column of a table");
  std::vector<hsize_t> extents;
  if (H5Tget_class(type) == H5T_ARRAY) {
    extents.resize(static_cast<std::size_t>(must(H5Tget_array_ndims(type), "column of a table")));
    must(H5Tget_array_dims2(type, extents.data()), "column of a table");
    type = Id(H5Tget_super(type), H5Tclose, "column of a table");
  }
  element_ = classify(type);
  const Id value = memory_type(type, element_);
  const auto axes = static_cast<unsigned>(extents.size());
  const Id whole(axes == 0 ? H5Tcopy(value) : H5Tarray_create2(value, axes, extents.data()), H5Tclose,
                 "column of a table");
  member_type_ = only_member(member, whole);
  datatype_ = std::move(type);
  shape_.insert(shape_.end(), extents.begin(), extents.end());
}

}  // namespace rowmill::h5
