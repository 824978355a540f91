#include "io/input_plan.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/units.hpp"
#include "io/joined_plan.hpp"
#include "io/json_numbers.hpp"

namespace rowmill {

namespace {

/// More than this with nothing of it written is a claim, not data.
constexpr std::int64_t kMaxUnwrittenBytes = 1LL << 40;
/// HDF5 keeps the size of a storage chunk in 32 bits.
constexpr std::int64_t kMaxChunkBytes = 1LL << 32;

[[noreturn]] void refuse(const InputPlan& plan, const std::string& why) {
  throw Error(ExitCode::input, plan.name() + ": " + why);
}

std::string shape_text(const InputPlan& plan) {
  std::string text;
  for (const std::int64_t extent : plan.shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

/// The product of positive factors; false if it overflows.
bool product(const std::vector<std::int64_t>& factors, std::int64_t first, std::int64_t& result) {
  result = first;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return false;
  }
  return true;
}

std::int64_t checked_bytes(const InputPlan& plan, std::int64_t row_limit) {
  if (plan.shape.empty()) refuse(plan, "it is a scalar: it has no rows");
  if (plan.shape.size() > kMaxAxes) refuse(plan, "it has more axes than are read here");
  if (plan.row_axis < 0 || static_cast<std::size_t>(plan.row_axis) >= plan.shape.size()) {
    throw Error(ExitCode::usage, plan.name() + ": it has no axis " + std::to_string(plan.row_axis) + ", its shape is " +
                                     shape_text(plan));
  }
  std::vector<std::int64_t> others;
  for (std::size_t axis = 0; axis < plan.shape.size(); ++axis) {
    if (plan.shape[axis] < 0) refuse(plan, "its shape is negative or too large: the file is damaged");
    if (static_cast<int>(axis) != plan.row_axis) others.push_back(plan.shape[axis]);
  }
  for (const std::int64_t extent : others) {
    if (extent == 0 && plan.rows() > 0) refuse(plan, "it has no columns (its shape is " + shape_text(plan) + ")");
  }
  std::int64_t row_bytes = 0, bytes = 0;
  if (!product(others, static_cast<std::int64_t>(size_of(plan.type)), row_bytes) ||
      !product({plan.rows()}, row_bytes, bytes)) {
    refuse(plan, "its shape, " + shape_text(plan) + ", is more than any file holds: the file is damaged or hostile");
  }
  if (row_bytes > row_limit) {
    refuse(plan, "one row has " + std::to_string(row_bytes / static_cast<std::int64_t>(size_of(plan.type))) +
                     " columns (" + format_size(row_bytes) + "): rows of at most " + format_size(row_limit) +
                     " can be milled; its shape is " + shape_text(plan));
  }
  return bytes;
}

void check_entry(const InputPlan& plan, const h5::ChunkEntry& entry, std::int64_t chunk_bytes) {
  const std::string chunk = "storage chunk " + std::to_string(entry.grid_index);
  const bool as_they_are = plan.filters.empty();
  if (entry.bytes < 1 || (as_they_are && entry.bytes != chunk_bytes) ||
      entry.bytes > h5::most_stored_bytes(chunk_bytes)) {
    refuse(plan, chunk + " is " + std::to_string(entry.bytes) + " bytes long, which cannot be: the file is damaged");
  }
  if (entry.address < 0 || entry.bytes > plan.file_bytes || entry.address > plan.file_bytes - entry.bytes) {
    refuse(plan, chunk + " lies beyond the end of the file, which is " + format_size(plan.file_bytes) +
                     " long: it is truncated or damaged");
  }
}

void check_chunks(const InputPlan& plan, std::int64_t memory_limit) {
  if (plan.chunk.size() != plan.shape.size()) refuse(plan, "its storage chunks make no sense: the file is damaged");
  std::int64_t chunk_bytes = 0, cells = 1;
  for (std::size_t axis = 0; axis < plan.chunk.size(); ++axis) {
    if (plan.chunk[axis] < 1) refuse(plan, "its storage chunks are empty: the file is damaged");
    const std::int64_t along = plan.shape[axis] / plan.chunk[axis] + (plan.shape[axis] % plan.chunk[axis] != 0);
    if (__builtin_mul_overflow(cells, along, &cells)) refuse(plan, "it has too many storage chunks");
  }
  if (!product(plan.chunk, static_cast<std::int64_t>(size_of(plan.type)), chunk_bytes) ||
      chunk_bytes > kMaxChunkBytes) {
    refuse(plan, "its storage chunks are larger than any file has them: the file is damaged");
  }
  if (!is_read_in_place(plan) && chunk_bytes > memory_limit / 2) {
    refuse(plan, "its storage chunks of " + format_size(chunk_bytes) + " are too large for the memory there is (" +
                     format_size(memory_limit / 2) +
                     " for one): write it again with smaller ones (h5repack -l CHUNK=…)");
  }
  for (const FilterStep& step : plan.filters) {
    if (const std::string why = why_not_decoded(step); !why.empty()) refuse(plan, why);
  }
  std::int64_t before = -1;
  for (const h5::ChunkEntry& entry : plan.chunk_table) {
    if (entry.grid_index <= before || entry.grid_index >= cells) {
      refuse(plan, "its table of storage chunks is damaged");
    }
    before = entry.grid_index;
    check_entry(plan, entry, chunk_bytes);
  }
}

}  // namespace

std::int64_t InputPlan::columns() const {
  std::int64_t result = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (static_cast<int>(axis) != row_axis) result *= shape[axis];
  }
  return result;
}

std::int64_t InputPlan::row_bytes() const {
  return columns() * static_cast<std::int64_t>(size_of(type));
}

bool is_read_in_place(const InputPlan& plan) {
  return plan.way == Way::chunks && plan.filters.empty() && plan.row_axis == 0;
}

void check_plan(const InputPlan& plan, std::int64_t row_limit) {
  const std::int64_t bytes = checked_bytes(plan, row_limit);
  if (plan.fill.size() != size_of(plan.type) && plan.format != "npy" && plan.parts.empty())
    refuse(plan, "its fill value makes no sense");
  if (plan.way == Way::contiguous && bytes > 0 &&
      (plan.offset < 0 || bytes > plan.file_bytes || plan.offset > plan.file_bytes - bytes)) {
    refuse(plan, "is truncated or damaged: its values end at byte " + std::to_string(plan.offset) + " + " +
                     std::to_string(bytes) + ", the file at " + std::to_string(plan.file_bytes));
  }
  if (plan.way == Way::fill && bytes > kMaxUnwrittenBytes) {
    refuse(plan, "it claims " + format_size(bytes) + " (its shape is " + shape_text(plan) +
                     "), of which nothing was ever written");
  }
  if (plan.way == Way::chunks || plan.way == Way::fetched) check_chunks(plan, row_limit);
}

SourceInfo info_of(const InputPlan& plan) {
  SourceInfo info;
  info.path = plan.path;
  info.dataset = plan.dataset;
  info.format = plan.format;
  info.rows = plan.rows();
  info.columns = plan.columns();
  info.type = plan.type;
  info.stored_type = plan.stored_type;
  info.shape = plan.shape;
  info.row_axis = plan.row_axis;
  info.storage_chunk_rows = plan.chunk.empty() ? 1 : plan.chunk[static_cast<std::size_t>(plan.row_axis)];
  info.storage = plan.storage;
  switch (plan.way) {
    case Way::contiguous:
      info.way = "read directly";
      break;
    case Way::chunks:
      info.way = plan.filters.empty() ? "storage chunks read directly" : "storage chunks, decoded in parallel";
      break;
    case Way::fetched:
      info.way = "storage chunks through a process of HDF5, decoded in parallel";
      break;
    case Way::fill:
      info.way = "fill value, nothing is stored";
      break;
    case Way::helper:
      info.way = "read by HDF5 in a process of its own";
      break;
    case Way::csr:
    case Way::csc:
    case Way::columns:
      for (const InputPlan& part : plan.parts) {
        const std::string way = info_of(part).way;
        if (info.way.find(way) == std::string::npos) info.way += (info.way.empty() ? "" : ", ") + way;
      }
      break;
    case Way::rows:
      describe_parts(plan, info);
      break;
  }
  info.file_bytes = plan.file_bytes;
  info.modified_ns = plan.modified_ns;
  info.warnings = plan.warnings;
  info.has_planted = plan.has_planted;
  info.format_reason = plan.format_reason;
  info.column_names = plan.column_names;
  return info;
}

namespace {

nlohmann::json steps_json(const std::vector<FilterStep>& steps) {
  nlohmann::json list = nlohmann::json::array();
  for (const FilterStep& step : steps) list.push_back({step.id, step.values});
  return list;
}

}  // namespace

std::vector<std::byte> serialise(const InputPlan& plan) {
  const auto binary = [](const void* data, std::size_t bytes) {
    std::vector<std::uint8_t> copy(bytes);
    if (bytes > 0) std::memcpy(copy.data(), data, bytes);
    return nlohmann::json::binary(std::move(copy));
  };
  nlohmann::json parts = nlohmann::json::array();
  for (const InputPlan& part : plan.parts) {
    const std::vector<std::byte> bytes = serialise(part);
    parts.push_back(binary(bytes.data(), bytes.size()));
  }
  // CBOR, since names in a file need not be UTF-8
  const std::vector<std::uint8_t> cbor = nlohmann::json::to_cbor(
      {{"path", plan.path},
       {"dataset", plan.dataset},
       {"format", plan.format},
       {"way", plan.way},
       {"shape", plan.shape},
       {"axis", plan.row_axis},
       {"fortran", plan.fortran},
       {"dtype", plan.type.dtype},
       {"swapped", plan.type.swapped},
       {"stored_type", plan.stored_type},
       {"storage", plan.storage},
       {"offset", plan.offset},
       {"fill", binary(plan.fill.data(), plan.fill.size())},
       {"chunk", plan.chunk},
       {"filters", steps_json(plan.filters)},
       {"edges_unfiltered", plan.edges_unfiltered},
       {"table", binary(plan.chunk_table.data(), plan.chunk_table.size() * sizeof(h5::ChunkEntry))},
       {"warnings", plan.warnings},
       {"planted", plan.has_planted},
       {"reason", plan.format_reason},
       {"conventions", to_plain_json(plan.conventions)},
       {"names", plan.column_names},
       {"parts", parts},
       {"places", plan.places},
       {"file_bytes", plan.file_bytes},
       {"modified_ns", plan.modified_ns}});
  std::vector<std::byte> bytes(cbor.size());
  std::memcpy(bytes.data(), cbor.data(), cbor.size());
  return bytes;
}

namespace {

/// One of an enumeration that begins with 0.
template <typename Enum>
Enum one_of(const nlohmann::json& number, Enum last) {
  const auto value = whole_number<std::uint64_t>(number);
  if (value > static_cast<std::uint64_t>(last)) throw Error(ExitCode::failed, "a plan of the input is damaged");
  return static_cast<Enum>(value);
}

InputPlan plan_of_cbor(const std::uint8_t* first, std::size_t bytes);

InputPlan plan_of_json(const nlohmann::json& json) {
  InputPlan plan;
  plan.path = json.at("path");
  plan.dataset = json.at("dataset");
  plan.format = json.at("format");
  plan.way = one_of(json.at("way"), kLastWay);
  plan.shape = whole_numbers<std::int64_t>(json.at("shape"));
  plan.row_axis = whole_number<int>(json.at("axis"));
  plan.fortran = json.at("fortran");
  plan.type = {one_of(json.at("dtype"), DType::u64), json.at("swapped").get<bool>()};
  plan.stored_type = json.at("stored_type");
  plan.storage = json.at("storage");
  plan.offset = whole_number<std::int64_t>(json.at("offset"));
  plan.chunk = whole_numbers<std::int64_t>(json.at("chunk"));
  plan.edges_unfiltered = json.at("edges_unfiltered");
  for (const auto& step : json.at("filters")) {
    plan.filters.push_back({whole_number<std::uint32_t>(step.at(0)), whole_numbers<std::uint32_t>(step.at(1))});
  }
  plan.warnings = json.at("warnings").get<std::vector<std::string>>();
  plan.has_planted = json.at("planted");
  plan.format_reason = json.at("reason");
  plan.conventions = conventions_from(json.at("conventions"));
  plan.column_names = json.at("names").get<std::vector<std::string>>();
  plan.places = whole_numbers<std::int64_t>(json.at("places"));
  for (const auto& part : json.at("parts")) {
    const auto& inner = part.get_binary();
    plan.parts.push_back(plan_of_cbor(inner.data(), inner.size()));
  }
  plan.file_bytes = whole_number<std::int64_t>(json.at("file_bytes"));
  plan.modified_ns = whole_number<std::int64_t>(json.at("modified_ns"));
  const auto& fill = json.at("fill").get_binary();
  const auto& table = json.at("table").get_binary();
  plan.fill.resize(fill.size());
  plan.chunk_table.resize(table.size() / sizeof(h5::ChunkEntry));
  if (!fill.empty()) std::memcpy(plan.fill.data(), fill.data(), fill.size());
  if (!plan.chunk_table.empty()) {
    std::memcpy(plan.chunk_table.data(), table.data(), plan.chunk_table.size() * sizeof(h5::ChunkEntry));
  }
  return plan;
}

InputPlan plan_of_cbor(const std::uint8_t* first, std::size_t bytes) {
  return plan_of_json(nlohmann::json::from_cbor(first, first + bytes));
}

}  // namespace

InputPlan deserialise_plan(const std::vector<std::byte>& bytes) {
  try {
    return plan_of_cbor(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::failed, "a plan of the input is damaged");
  }
}

}  // namespace rowmill
