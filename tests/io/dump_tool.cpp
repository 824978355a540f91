// Reads a source whole and prints what is in it, column by column, by the plainest means: for comparing with other
// readers of the same files. Not installed.
//
// usage: rowmill-io-dump INPUT [--format F] [--row-axis N] [--block-rows N] [--info]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/error.hpp"
#include "io/open.hpp"
#include "tests/support/element_value.hpp"

namespace {

using rowmill::CsrRows;
using rowmill::DenseRows;
using rowmill::MaskView;

struct Column {
  std::int64_t count = 0, missing = 0;
  long double sum = 0;
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
};

/// Values of one byte are counted: some test files claim billions of them.
void add_bytes(const DenseRows& rows, std::vector<Column>& columns) {
  for (std::size_t j = 0; j < columns.size(); ++j) {
    std::array<std::int64_t, 256> seen = {};
    for (std::int64_t i = 0; i < rows.rows; ++i) {
      ++seen[static_cast<std::size_t>(rows.data[i * rows.stride + static_cast<std::int64_t>(j)])];
    }
    for (std::size_t byte = 0; byte < seen.size(); ++byte) {
      if (seen[byte] == 0) continue;
      const auto stored = static_cast<std::byte>(byte);
      const long double value = rowmill::test::element_value(&stored, rows.type);
      Column& column = columns[j];
      column.count += seen[byte];
      column.sum += value * static_cast<long double>(seen[byte]);
      column.min = std::min(column.min, static_cast<double>(value));
      column.max = std::max(column.max, static_cast<double>(value));
    }
  }
}

void add_value(long double value, Column& column) {
  if (std::isnan(value)) {
    ++column.missing;
    return;
  }
  ++column.count;
  column.sum += value;
  column.min = std::min(column.min, static_cast<double>(value));
  column.max = std::max(column.max, static_cast<double>(value));
}

void add(const DenseRows& rows, const std::optional<MaskView>& mask, std::vector<Column>& columns) {
  if (size_of(rows.type) == 1 && !mask) return add_bytes(rows, columns);
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const std::byte* at =
          rows.data + (i * rows.stride + static_cast<std::int64_t>(j)) * static_cast<std::int64_t>(size_of(rows.type));
      const bool missing = mask && mask->at(i, static_cast<std::int64_t>(j)) != 0;
      add_value(missing ? std::numeric_limits<long double>::quiet_NaN() : rowmill::test::element_value(at, rows.type),
                columns[j]);
    }
  }
}

void add(const CsrRows& rows, std::vector<Column>& columns) {
  std::vector<long double> row(static_cast<std::size_t>(rows.columns));
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    std::fill(row.begin(), row.end(), 0.0L);
    for (std::int64_t k = rows.row_start[i]; k < rows.row_start[i + 1]; ++k) {
      row.at(static_cast<std::size_t>(rows.index[k])) =
          rowmill::test::element_value(rows.value + k * static_cast<std::int64_t>(size_of(rows.type)), rows.type);
    }
    for (std::size_t j = 0; j < columns.size(); ++j) add_value(row[j], columns[j]);
  }
}

std::vector<Column> read_all(rowmill::Source& source, std::int64_t block_rows) {
  const rowmill::SourceInfo& info = source.info();
  std::vector<Column> columns(static_cast<std::size_t>(std::min<std::int64_t>(64, info.columns)));
  if (block_rows == 0) {
    const auto row_bytes = std::max<std::int64_t>(1, info.columns * static_cast<std::int64_t>(size_of(info.type)));
    block_rows = std::max<std::int64_t>(1, (4 << 20) / row_bytes / info.storage_chunk_rows) * info.storage_chunk_rows;
  }
  const auto backend = rowmill::make_host_backend();
  for (std::int64_t first = 0; first < info.rows; first += block_rows) {
    const rowmill::RowRange rows{first, std::min(block_rows, info.rows - first)};
    const auto bytes = source.bytes_for(rows);
    const rowmill::DeviceBuffer buffer(*backend, bytes, backend->make_queue());
    const rowmill::SourceRows got = source.read(rows, {buffer.data(), bytes});
    if (const auto* dense = std::get_if<DenseRows>(&got.rows)) {
      add(*dense, got.missing, columns);
    } else {
      add(std::get<CsrRows>(got.rows), columns);
    }
  }
  return columns;
}

std::string digits(long double value) {
  std::array<char, 64> text = {};
  std::snprintf(text.data(), text.size(), "%.21Lg", value);
  return text.data();
}

int dump(const rowmill::InputRequest& request, std::int64_t block_rows, bool info_only) {
  const auto source = make_source(plan_input(request), request);
  const rowmill::SourceInfo& info = source->info();
  nlohmann::json out = {{"rows", info.rows},          {"columns", info.columns},  {"type", name_of(info.type)},
                        {"stored", info.stored_type}, {"storage", info.storage},  {"way", info.way},
                        {"dataset", info.dataset},    {"warnings", info.warnings}};
  if (!info_only) {
    if (info.rows == 0) throw rowmill::Error(rowmill::ExitCode::input, info.path + ": has no rows");
    for (const Column& c : read_all(*source, block_rows)) {
      out["n"].push_back(c.count);
      out["nan"].push_back(c.missing);
      out["sum"].push_back(digits(c.sum));
      out["mean"].push_back(digits(c.sum / static_cast<long double>(c.count)));
      out["min"].push_back(digits(c.min));
      out["max"].push_back(digits(c.max));
    }
    out["bytes_read"] = source->bytes_read();
  }
  std::puts(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  rowmill::InputRequest request;
  request.inputs = {argv[1]};
  std::int64_t block_rows = 0;
  bool info_only = false;
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--info") info_only = true;
    if (option == "--format" && i + 1 < argc) request.format = argv[++i];
    if (option == "--row-axis" && i + 1 < argc) request.row_axis = std::atoi(argv[++i]);
    if (option == "--block-rows" && i + 1 < argc) block_rows = std::atoll(argv[++i]);
  }
  try {
    return dump(request, block_rows, info_only);
  } catch (const rowmill::Error& e) {
    std::fprintf(stderr, "rowmill: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
