#include "io/h5_helper/frames.hpp"

#include <map>
#include <optional>

#include "io/h5_helper/attributes.hpp"
#include "io/h5_helper/element.hpp"
#include "io/h5_helper/names.hpp"

namespace rowmill::h5 {

namespace {

constexpr std::uint64_t kMaxBlocks = 1000;

/// One block's values.
struct Block {
  std::string path, items;
  std::string type;
  bool numeric = false, rows_first = true;
  hsize_t rows = 0, columns = 0;
};

Block look_at(hid_t group, const std::string& path, const std::string& items) {
  const std::optional<Id> dataset = find_dataset(group, path);
  if (!dataset) throw Refusal("its " + path + " is missing: the file is damaged");
  const Id type(H5Dget_type(*dataset), H5Tclose, "datatype"), space(H5Dget_space(*dataset), H5Sclose, "shape");
  Element element = classify(type);
  if (const auto dates = text_attribute(*dataset, "value_type")) element = Element{false, {}, false, *dates};
  hsize_t extents[2] = {0, 1};
  const int axes = H5Sget_simple_extent_ndims(space);
  Block block{path, items, element.text, element.numeric, true, 0, 1};
  if (axes == 1 || axes == 2) must(H5Sget_simple_extent_dims(space, extents, nullptr), "shape");
  // without this mark pandas wrote items × rows
  block.rows_first = axes == 1 || has_attribute(*dataset, "transposed");
  block.rows = extents[block.rows_first ? 0 : 1];
  block.columns = extents[block.rows_first ? 1 : 0];
  return block;
}

std::vector<Block> blocks_of(hid_t group) {
  const std::string kind = text_attribute(group, "pandas_type").value_or("");
  if (kind == "series") return {look_at(group, "values", "")};
  if (kind == "frame_table" || kind == "appendable_frame" || kind == "series_table") {
    throw Refusal(
        "it is a pandas table: name one of its blocks, as in …/table/values_block_0, or write it with "
        "format=\"fixed\"");
  }
  if (kind != "frame")
    throw Refusal("it is a pandas " + kind + ", which is not read here: write its numbers as an array");
  const std::vector<Number> count = number_attribute(group, "nblocks");
  if (count.size() != 1 || count[0].bits > kMaxBlocks)
    throw Refusal("its number of blocks makes no sense: it is damaged");
  std::vector<Block> blocks;
  for (std::uint64_t i = 0; i < count[0].bits; ++i) {
    const std::string name = "block" + std::to_string(i);
    blocks.push_back(look_at(group, name + "_values", name + "_items"));
  }
  if (blocks.empty()) throw Refusal("it is an empty frame");
  return blocks;
}

/// For each column of the block its place in the frame.
std::vector<std::size_t> places_of(hid_t group, const Block& block, const std::map<std::string, std::size_t>& order) {
  const std::vector<std::string> items = read_names(group, block.items);
  std::vector<std::size_t> places;
  for (const std::string& item : items) {
    const auto found = order.find(item);
    if (found == order.end()) throw Refusal("its column \"" + item + "\" is not in axis0: the file is damaged");
    places.push_back(found->second);
  }
  if (places.size() != block.columns) {
    throw Refusal("the columns of its " + block.path + " have no names that are read here: name " + block.path +
                  " itself");
  }
  return places;
}

}  // namespace

nlohmann::json plan_frame(hid_t group, int axis) {
  if (axis != 0) throw WrongUsage("rows of a frame are its axis 0");
  const std::vector<Block> blocks = blocks_of(group);
  const std::vector<std::string> names = read_names(group, "axis0");
  hsize_t columns = 0;
  for (const Block& block : blocks) {
    if (!block.numeric) {
      throw Refusal("its " + block.path + " is not numeric (" + block.type + "): name a block of numbers in it");
    }
    columns += block.columns;
  }
  std::map<std::string, std::size_t> order;
  for (std::size_t i = 0; i < names.size(); ++i) order.emplace(names[i], i);
  if (blocks.size() > 1 && (order.size() != columns || names.size() != columns)) {
    throw Refusal(
        "its columns have no names of their own (axis0), so that its blocks cannot be put in order: name one");
  }
  nlohmann::json json = {{"group", "columns"},
                         {"shape", {blocks[0].rows, columns}},
                         {"parts", nlohmann::json::array()},
                         {"warnings", nlohmann::json::array()}};
  for (const Block& block : blocks) {
    nlohmann::json part = {
        {"path", block.path}, {"axis", block.rows_first ? 0 : 1}, {"places", nlohmann::json::array()}};
    if (blocks.size() > 1) part["places"] = places_of(group, block, order);
    json["parts"].push_back(std::move(part));
  }
  if (names.size() == columns) json["names"] = names;
  return json;
}

bool list_frame(hid_t group, nlohmann::json& line) {
  if (!has_attribute(group, "pandas_type")) return false;
  line["type"] = "frame";
  line["why_not"] = "";
  std::string types;
  hsize_t rows = 0, columns = 0;
  for (const Block& block : blocks_of(group)) {
    types += (types.empty() ? "" : " + ") + block.type;
    rows = block.rows;
    columns += block.columns;
    if (!block.numeric) line["why_not"] = "its " + block.path + " is not numeric: " + block.type;
  }
  line["type"] = types;
  line["shape"] = std::to_string(rows) + " x " + std::to_string(columns);
  line["storage"] = "pandas blocks";
  return true;
}

}  // namespace rowmill::h5
