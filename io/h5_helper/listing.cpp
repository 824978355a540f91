#include "io/h5_helper/listing.hpp"

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "core/printable.hpp"
#include "core/units.hpp"
#include "io/h5_helper/attributes.hpp"
#include "io/h5_helper/groups.hpp"
#include "io/h5_helper/netcdf.hpp"
#include "io/h5_helper/opened.hpp"
#include "io/h5_helper/plan.hpp"
#include "io/h5_helper/view.hpp"

namespace rowmill::h5 {

namespace {

constexpr std::size_t kMaxObjects = 20000;

struct Link {
  std::string name;
  H5L_type_t type;
};

struct Links {
  std::vector<Link> found;
  std::size_t room;
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* to) {
  auto* links = static_cast<Links*>(to);
  if (links->found.size() >= links->room) return 1;
  links->found.push_back({name, info->type});
  return 0;
}

class Walk {
 public:
  Walk(hid_t file, const std::string& file_name, const std::string& wanted)
      : file_(file), file_name_(file_name), wanted_(wanted) {}

  nlohmann::json run() {
    groups_.push_back("/");
    while (!groups_.empty() && seen_.size() < kMaxObjects) {
      const std::string path = groups_.front();
      groups_.pop_front();
      visit_group(path);
    }
    if (!groups_.empty()) note("only the first " + std::to_string(kMaxObjects) + " objects are listed");
    if (external_ > 0) note(external_note());
    Format format{wanted_, "--format"};
    if (wanted_ == "auto") format = format_of_file(file_, file_name_);
    return {{"datasets", datasets_}, {"notes", notes_}, {"format", format.name}, {"reason", format.reason}};
  }

 private:
  std::string external_note() const {
    return counted(external_, "external link") + (external_ == 1 ? " is" : " are") +
           " not followed unless named, as FILE:" + shortened(first_external_, 80);
  }

  void note(const std::string& text) {
    if (notes_.size() < 20) notes_.push_back(text);
  }

  /// False if the object was met before or cannot be looked at.
  bool is_new(hid_t object) {
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) {
      H5Eclear2(H5E_DEFAULT);
      return false;
    }
    return seen_.insert(info.addr).second;
  }

  void visit_group(const std::string& path) {
    const hid_t id = H5Gopen2(file_, path.c_str(), H5P_DEFAULT);
    if (id < 0) {
      note("group " + path + " cannot be opened: " + error_text());
      return;
    }
    const Id group(id, H5Gclose, "group");
    if (!is_new(group)) return;
    if (wanted_ != "hdf5" && path != "/") {
      if (auto line = list_group(group, path)) {
        (*line)["part"] = is_part(path);
        datasets_.push_back(std::move(*line));
        matrices_.insert(path);
      }
    }
    Links links{{}, kMaxObjects};
    hsize_t position = 0;
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &position, collect_link, &links) < 0) {
      note("group " + path + " cannot be listed: " + error_text());
    }
    for (const Link& link : links.found)
      visit_link(group, path == "/" ? path + link.name : path + "/" + link.name, link);
  }

  void visit_link(hid_t group, const std::string& path, const Link& link) {
    if (link.type == H5L_TYPE_EXTERNAL && ++external_ == 1) first_external_ = path;
    if (link.type != H5L_TYPE_HARD) return;  // a soft link leads to what is listed by its own name
    const hid_t id = H5Oopen(group, link.name.c_str(), H5P_DEFAULT);
    if (id < 0) {
      note(path + " cannot be opened: " + error_text());
      return;
    }
    const Id object(id, H5Oclose, "object");
    const H5I_type_t type = H5Iget_type(object);
    if (type == H5I_GROUP && path.size() < 4096) groups_.push_back(path);
    if (type == H5I_DATASET && is_new(object)) datasets_.push_back(describe(path));
  }

  /// Something that another data set is made of, or that a program keeps for itself.
  bool is_part(const std::string& path) const {
    if (wanted_ == "hdf5") return false;
    if (path.starts_with("/#refs#/") || path.starts_with("/#subsystem#/")) return true;  // of MATLAB
    for (std::size_t at = path.rfind('/'); at != std::string::npos && at > 0; at = path.rfind('/', at - 1)) {
      if (matrices_.count(path.substr(0, at)) > 0) return true;
    }
    return false;
  }

  nlohmann::json describe(const std::string& path) {
    nlohmann::json line = {{"path", path},   {"type", "?"},           {"shape", "?"},
                           {"storage", "?"}, {"needs_filter", false}, {"part", false}};
    try {
      const OpenedDataset dataset(file_, path, ChunkCache{});
      line["type"] = dataset.element().text;
      line["shape"] = shape_text(dataset);
      line["storage"] = storage_text(dataset);
      line["why_not"] = why_not(dataset);
      const Format format = format_of_dataset(dataset.id());
      if (const std::string why = why_not_in(format, dataset.id()); !why.empty()) line["why_not"] = why;
      line["part"] = is_part(path) || (wanted_ != "hdf5" && is_dimension(dataset.id()));
      line["needs_filter"] = why_no_rows(dataset).empty() && !missing_filter(dataset).empty();
    } catch (const Refusal& e) {
      line["why_not"] = e.what();
    }
    line["numeric"] = line["why_not"].get_ref<const std::string&>().empty();
    return line;
  }

  /// Without a look at the whole file: only MATLAB refuses data sets, and marks each of them.
  Format format_of_dataset(hid_t dataset) const {
    if (wanted_ == "hdf5") return {};
    return has_attribute(dataset, "MATLAB_class") ? Format{"matlab", ""} : Format{};
  }

  hid_t file_;
  std::string file_name_, wanted_;
  std::deque<std::string> groups_;
  std::set<haddr_t> seen_;
  std::set<std::string> matrices_;  ///< groups that are one matrix
  std::int64_t external_ = 0;
  std::string first_external_;
  nlohmann::json datasets_ = nlohmann::json::array();
  std::vector<std::string> notes_;
};

}  // namespace

nlohmann::json list_datasets(hid_t file, const std::string& file_name, const std::string& format) {
  return Walk(file, file_name, format).run();
}

std::string held_in(hid_t file, const std::string& file_name, const std::string& group) {
  constexpr std::int64_t few = 5;
  const std::string start = group.ends_with('/') ? group : group + "/";
  std::string names;
  std::int64_t count = 0;
  const nlohmann::json all = Walk(file, file_name, "auto").run();
  for (const auto& line : all.at("datasets")) {
    const auto& path = line.at("path").get_ref<const std::string&>();
    if (!path.starts_with(start) || ++count > few) continue;
    names += (count == 1 ? "" : ", ") + shortened(path, 80);
  }
  if (count == 0) return "it holds no data set";
  return "it holds " + names + (count > few ? " and " + grouped(count - few) + " more" : "");
}

}  // namespace rowmill::h5
