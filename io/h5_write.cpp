#include "io/h5_write.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace rowmill {
namespace {

/// The innermost description on HDF5's error stack is the most telling one.
herr_t keep_description(unsigned, const H5E_error2_t* entry, void* text) {
  if (entry->desc != nullptr && *entry->desc != '\0') *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

/// Of a failed system call HDF5 tells more than people want to know; the system's own words are quoted in it.
std::string plain_reason(const std::string& reason) {
  const std::string mark = "error message = '";
  const auto start = reason.find(mark);
  if (start == std::string::npos) return reason;
  const auto first = start + mark.size();
  return reason.substr(first, reason.find('\'', first) - first);
}

H5Handle text_type() {
  H5Handle type = h5_own(H5Tcopy(H5T_C_S1), "string type");
  h5_check(H5Tset_size(type.get(), H5T_VARIABLE), "string type");
  h5_check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "string type");
  return type;
}

H5Handle make_space(const std::vector<std::int64_t>& shape, const std::string& what) {
  if (shape.empty()) return h5_own(H5Screate(H5S_SCALAR), what);
  std::vector<hsize_t> extent;
  for (const std::int64_t n : shape) extent.push_back(static_cast<hsize_t>(n));
  return h5_own(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), what);
}

void write_dataset(hid_t file, const std::string& name, hid_t type, const std::vector<std::int64_t>& shape,
                   const void* values) {
  const H5Handle space = make_space(shape, name);
  const H5Handle links = h5_own(H5Pcreate(H5P_LINK_CREATE), name);
  h5_check(H5Pset_create_intermediate_group(links.get(), 1), name);
  const H5Handle creation = h5_dataset_creation();
  const H5Handle dataset =
      h5_own(H5Dcreate2(file, name.c_str(), type, space.get(), links.get(), creation.get(), H5P_DEFAULT), name);
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (!empty) h5_check(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), name);
}

void write_scalar(hid_t object, const std::string& name, hid_t type, const void* value) {
  const H5Handle space = h5_own(H5Screate(H5S_SCALAR), name);
  const H5Handle attribute =
      h5_own(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), name);
  h5_check(H5Awrite(attribute.get(), type, value), name);
}

}  // namespace

H5Handle::~H5Handle() {
  if (id_ >= 0) H5Idec_ref(id_);
}

H5Quiet::H5Quiet() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

H5Quiet::~H5Quiet() {
  H5Eset_auto2(H5E_DEFAULT, function_, data_);
}

void h5_check(std::int64_t result, const std::string& what) {
  if (result >= 0) return;
  std::string reason = "HDF5 gives no reason";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_description, &reason);
  throw Error(ExitCode::failed, "cannot write " + what + ": " + plain_reason(reason));
}

H5Handle h5_own(hid_t id, const std::string& what) {
  h5_check(id, what);
  return H5Handle(id);
}

H5Handle h5_file_creation() {
  H5Handle list = h5_own(H5Pcreate(H5P_FILE_CREATE), "file properties");
  h5_check(H5Pset_obj_track_times(list.get(), false), "file properties");
  return list;
}

H5Handle h5_dataset_creation() {
  H5Handle list = h5_own(H5Pcreate(H5P_DATASET_CREATE), "data set properties");
  h5_check(H5Pset_obj_track_times(list.get(), false), "data set properties");
  return list;
}

void h5_write_attribute(hid_t object, const std::string& name, const AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    const char* const characters = text->c_str();
    write_scalar(object, name, text_type().get(), &characters);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    write_scalar(object, name, H5T_NATIVE_INT64, integer);
  } else {
    write_scalar(object, name, H5T_NATIVE_DOUBLE, &std::get<double>(value));
  }
}

void h5_write_doubles(hid_t file, const std::string& name, const std::vector<std::int64_t>& shape,
                      std::span<const double> values) {
  write_dataset(file, name, H5T_NATIVE_DOUBLE, shape, values.data());
}

void h5_write_strings(hid_t file, const std::string& name, const std::vector<std::string>& values) {
  std::vector<const char*> characters;
  for (const std::string& value : values) characters.push_back(value.c_str());
  write_dataset(file, name, text_type().get(), {static_cast<std::int64_t>(values.size())}, characters.data());
}

H5MemoryFile::H5MemoryFile() {
  constexpr std::size_t kGrowth = std::size_t{1} << 20;
  access_ = h5_own(H5Pcreate(H5P_FILE_ACCESS), "file in memory");
  h5_check(H5Pset_fapl_core(access_.get(), kGrowth, false), "file in memory");
  // the name is never opened
  file_ =
      h5_own(H5Fcreate("rowmill-in-memory", H5F_ACC_TRUNC, h5_file_creation().get(), access_.get()), "file in memory");
}

std::span<const std::byte> H5MemoryFile::bytes() {
  h5_check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "file in memory");
  const ssize_t size = H5Fget_file_image(file_.get(), nullptr, 0);
  h5_check(size, "file in memory");
  // the core driver's handle is the address of its buffer: no second copy of what may be gigabytes
  void* handle = nullptr;
  h5_check(H5Fget_vfd_handle(file_.get(), access_.get(), &handle), "file in memory");
  return {*static_cast<const std::byte* const*>(handle), static_cast<std::size_t>(size)};
}

}  // namespace rowmill
