#include "io/input_plan.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rowmill {

namespace {

/// More than this with nothing of it written is a claim, not data.
constexpr std::int64_t kMaxUnwrittenBytes = 1LL << 40;

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

void check_chunks(const InputPlan& plan) {
  if (plan.chunk.size() != plan.shape.size()) refuse(plan, "its storage chunks make no sense: the file is damaged");
  std::int64_t chunk_bytes = 0, cells = 1;
  for (std::size_t axis = 0; axis < plan.chunk.size(); ++axis) {
    if (plan.chunk[axis] < 1) refuse(plan, "its storage chunks are empty: the file is damaged");
    const std::int64_t along = plan.shape[axis] / plan.chunk[axis] + (plan.shape[axis] % plan.chunk[axis] != 0);
    if (__builtin_mul_overflow(cells, along, &cells)) refuse(plan, "it has too many storage chunks");
  }
  if (!product(plan.chunk, static_cast<std::int64_t>(size_of(plan.type)), chunk_bytes)) {
    refuse(plan, "its storage chunks are larger than any file: the file is damaged");
  }
  std::int64_t before = -1;
  for (const h5::ChunkEntry& entry : plan.chunk_table) {
    if (entry.grid_index <= before || entry.grid_index >= cells) {
      refuse(plan, "its table of storage chunks is damaged");
    }
    before = entry.grid_index;
    if (entry.address < 0 || chunk_bytes > plan.file_bytes || entry.address > plan.file_bytes - chunk_bytes) {
      refuse(plan, "storage chunk " + std::to_string(entry.grid_index) + " lies beyond the end of the file, which is " +
                       format_size(plan.file_bytes) + " long: it is truncated or damaged");
    }
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

void check_plan(const InputPlan& plan, std::int64_t row_limit) {
  const std::int64_t bytes = checked_bytes(plan, row_limit);
  if (plan.fill.size() != size_of(plan.type) && plan.format == "hdf5") refuse(plan, "its fill value makes no sense");
  if (plan.way == Way::contiguous && bytes > 0 &&
      (plan.offset < 0 || bytes > plan.file_bytes || plan.offset > plan.file_bytes - bytes)) {
    refuse(plan, "is truncated or damaged: its values end at byte " + std::to_string(plan.offset) + " + " +
                     std::to_string(bytes) + ", the file at " + std::to_string(plan.file_bytes));
  }
  if (plan.way == Way::fill && bytes > kMaxUnwrittenBytes) {
    refuse(plan, "it claims " + format_size(bytes) + " (its shape is " + shape_text(plan) +
                     "), of which nothing was ever written");
  }
  if (plan.way == Way::chunks) check_chunks(plan);
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
      info.way = "storage chunks read directly";
      break;
    case Way::fill:
      info.way = "fill value, nothing is stored";
      break;
    case Way::helper:
      info.way = "read by HDF5 in a process of its own";
      break;
  }
  info.file_bytes = plan.file_bytes;
  info.modified_ns = plan.modified_ns;
  info.warnings = plan.warnings;
  info.has_planted = plan.has_planted;
  return info;
}

std::vector<std::byte> serialise(const InputPlan& plan) {
  const auto binary = [](const void* data, std::size_t bytes) {
    std::vector<std::uint8_t> copy(bytes);
    if (bytes > 0) std::memcpy(copy.data(), data, bytes);
    return nlohmann::json::binary(std::move(copy));
  };
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
       {"table", binary(plan.chunk_table.data(), plan.chunk_table.size() * sizeof(h5::ChunkEntry))},
       {"warnings", plan.warnings},
       {"planted", plan.has_planted},
       {"file_bytes", plan.file_bytes},
       {"modified_ns", plan.modified_ns}});
  std::vector<std::byte> bytes(cbor.size());
  std::memcpy(bytes.data(), cbor.data(), cbor.size());
  return bytes;
}

InputPlan deserialise_plan(const std::vector<std::byte>& bytes) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const nlohmann::json json = nlohmann::json::from_cbor(first, first + bytes.size());
  InputPlan plan;
  plan.path = json.at("path");
  plan.dataset = json.at("dataset");
  plan.format = json.at("format");
  plan.way = json.at("way");
  plan.shape = json.at("shape").get<std::vector<std::int64_t>>();
  plan.row_axis = json.at("axis");
  plan.fortran = json.at("fortran");
  plan.type = {json.at("dtype").get<DType>(), json.at("swapped").get<bool>()};
  plan.stored_type = json.at("stored_type");
  plan.storage = json.at("storage");
  plan.offset = json.at("offset");
  plan.chunk = json.at("chunk").get<std::vector<std::int64_t>>();
  plan.warnings = json.at("warnings").get<std::vector<std::string>>();
  plan.has_planted = json.at("planted");
  plan.file_bytes = json.at("file_bytes");
  plan.modified_ns = json.at("modified_ns");
  const auto& fill = json.at("fill").get_binary();
  const auto& table = json.at("table").get_binary();
  plan.fill.resize(fill.size());
  plan.chunk_table.resize(table.size() / sizeof(h5::ChunkEntry));
  if (!fill.empty()) std::memcpy(plan.fill.data(), fill.data(), fill.size());
  if (!table.empty()) std::memcpy(plan.chunk_table.data(), table.data(), table.size());
  return plan;
}

}  // namespace rowmill
