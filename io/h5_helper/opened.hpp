#pragma once
// A file and one of its data sets, opened for reading, with everything that the data set pulls in looked at first.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/h5_helper/element.hpp"
#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

/// Opens a file read-only, without locks. Throws Refusal.
Id open_file(const std::string& path);

/// There is no data set of the name: nothing at all, or a group. The group whose data sets may have been meant.
class NoDataset : public Refusal {
 public:
  NoDataset(const std::string& what, std::string group) : Refusal(what), group_(std::move(group)) {}
  const std::string& group() const { return group_; }

 private:
  std::string group_;
};

/// Opens a group or a data set. External links are followed within the file's folder. Throws NoDataset or Refusal.
Id open_any(hid_t file, const std::string& path);

/// Room for storage chunks that H5Dread keeps decompressed between calls.
struct ChunkCache {
  std::int64_t bytes = 0, slots = 521;
};

class OpenedDataset {
 public:
  /// `path` may name a column of a table. Throws NoDataset, or Refusal: it needs something that is missing or not
  /// allowed.
  OpenedDataset(hid_t file, const std::string& path, ChunkCache cache);

  /// Closes what H5Dread has opened for it.
  void reopen();

  hid_t id() const { return id_; }
  hid_t creation() const { return creation_; }
  hid_t datatype() const { return datatype_; }
  const Element& element() const { return element_; }
  /// Of a column of a table: its rows, then the extents of one value of it.
  const std::vector<hsize_t>& shape() const { return shape_; }
  /// The compound that H5Dread is asked to deliver; negative if this is no column of a table.
  hid_t member_type() const { return member_type_; }
  bool is_member() const { return member_type_ >= 0; }
  H5S_class_t space_class() const { return space_class_; }
  H5D_layout_t layout() const { return layout_; }
  /// False behind an external link.
  bool in_this_file() const { return in_this_file_; }

 private:
  void narrow_to(const std::string& member);
  void open_with_cache();

  hid_t file_;
  std::string path_;
  ChunkCache cache_;

  Id id_, creation_, datatype_, member_type_;
  Element element_;
  std::vector<hsize_t> shape_;
  H5S_class_t space_class_ = H5S_NO_CLASS;
  H5D_layout_t layout_ = H5D_LAYOUT_ERROR;
  bool in_this_file_ = true;
};

}  // namespace rowmill::h5
