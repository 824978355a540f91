#include "io/h5_helper/table.hpp"

#include "io/h5_helper/attributes.hpp"
#include "io/h5_helper/element.hpp"

namespace rowmill::h5 {

std::optional<TableColumn> table_column(hid_t file, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0 || find_object(file, path)) return {};
  TableColumn column{path.substr(0, slash), path.substr(slash + 1)};
  const std::optional<Id> table = find_dataset(file, column.table);
  if (!table) return {};
  const Id type(H5Dget_type(*table), H5Tclose, "datatype"), space(H5Dget_space(*table), H5Sclose, "shape");
  if (H5Tget_class(type) != H5T_COMPOUND || H5Sget_simple_extent_ndims(space) != 1) return {};
  const int member = H5Tget_member_index(type, column.member.c_str());
  H5Eclear2(H5E_DEFAULT);
  if (member < 0) throw Refusal("its table has no column of that name");
  return column;
}

Id only_member(const std::string& member, hid_t memory_type) {
  Id compound(H5Tcreate(H5T_COMPOUND, H5Tget_size(memory_type)), H5Tclose, "column of a table");
  must(H5Tinsert(compound, member.c_str(), 0, memory_type), "column of a table");
  return compound;
}

std::string numeric_member(hid_t compound) {
  const int members = H5Tget_nmembers(compound);
  for (int i = 0; i < members; ++i) {
    const Id type(H5Tget_member_type(compound, static_cast<unsigned>(i)), H5Tclose, "column of a table");
    const bool array = H5Tget_class(type) == H5T_ARRAY;
    const Id base(array ? H5Tget_super(type) : H5Tcopy(type), H5Tclose, "column of a table");
    if (!classify(base).numeric) continue;
    char* name = H5Tget_member_name(compound, static_cast<unsigned>(i));
    std::string text = name == nullptr ? "" : name;
    if (name != nullptr) H5free_memory(name);
    return text;
  }
  return "";
}

}  // namespace rowmill::h5
