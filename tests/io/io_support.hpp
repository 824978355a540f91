#pragma once
// For tests of sources: a data set as a model in memory, HDF5 files of it, and reads compared byte by byte.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/pool.hpp"
#include "io/open.hpp"

namespace rowmill::test {

/// A data set: its bytes as stored, in C order of its axes.
struct Model {
  std::vector<std::int64_t> shape;
  ElementType type;
  std::vector<std::byte> bytes;

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
  std::size_t width() const { return size_of(type); }

  /// Rows as a source should deliver them: the row axis first, the others behind in their order.
  std::vector<std::byte> rows(int row_axis, RowRange range) const {
    const auto axis = static_cast<std::size_t>(row_axis);
    std::int64_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
    std::vector<std::byte> result;
    const auto run = static_cast<std::size_t>(inner) * width();
    for (std::int64_t row = range.first; row < range.end(); ++row) {
      for (std::int64_t o = 0; o < outer; ++o) {
        const auto* from = bytes.data() + static_cast<std::size_t>(o * shape[axis] + row) * run;
        result.insert(result.end(), from, from + run);
      }
    }
    return result;
  }
};

inline Model random_model(std::mt19937_64& random, std::vector<std::int64_t> shape, ElementType type) {
  Model model{std::move(shape), type, {}};
  model.bytes.resize(static_cast<std::size_t>(model.elements()) * model.width());
  for (auto& byte : model.bytes) byte = static_cast<std::byte>(random());
  return model;
}

inline std::int64_t pick(std::mt19937_64& random, std::int64_t from, std::int64_t to) {
  return std::uniform_int_distribution<std::int64_t>(from, to)(random);
}

/// The HDF5 type with exactly these bytes.
inline hid_t stored_type(ElementType type) {
  const hid_t bases[] = {H5T_IEEE_F32LE, H5T_IEEE_F32LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_I8LE,  H5T_STD_I16LE,
                         H5T_STD_I32LE,  H5T_STD_I64LE,  H5T_STD_U8LE,   H5T_STD_U16LE,  H5T_STD_U32LE, H5T_STD_U64LE};
  const hid_t result = H5Tcopy(bases[static_cast<int>(type.dtype)]);
  if (type.dtype == DType::f16) {
    H5Tset_fields(result, 15, 10, 5, 0, 10);
    H5Tset_size(result, 2);
    H5Tset_ebias(result, 15);
  }
  if (type.dtype == DType::bf16) {
    H5Tset_fields(result, 15, 7, 8, 0, 7);
    H5Tset_size(result, 2);
  }
  const bool big = type.swapped == (std::endian::native == std::endian::little);
  H5Tset_order(result, big ? H5T_ORDER_BE : H5T_ORDER_LE);
  return result;
}

/// How a data set is to lie in its file.
struct Storage {
  std::vector<std::int64_t> chunk = {};  ///< empty: contiguous
  bool compact = false, shuffle = false, fletcher = false, latest = false;
  int gzip = 0;
  std::int64_t user_block = 0;
  std::int64_t written_rows = -1;        ///< of axis 0; the others are never written
  std::vector<std::byte> fill = {};      ///< fill value, one element; empty: HDF5's own (0)
  std::function<void(hid_t)> more = {};  ///< further settings of the creation list
};

inline hid_t creation_list(const Model& model, const Storage& storage, hid_t type) {
  const std::vector<hsize_t> chunk(storage.chunk.begin(), storage.chunk.end());
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (!chunk.empty()) H5Pset_chunk(list, static_cast<int>(model.shape.size()), chunk.data());
  if (storage.compact) H5Pset_layout(list, H5D_COMPACT);
  if (storage.shuffle) H5Pset_shuffle(list);
  if (storage.gzip > 0) H5Pset_deflate(list, static_cast<unsigned>(storage.gzip));
  if (storage.fletcher) H5Pset_fletcher32(list);
  if (!storage.fill.empty()) H5Pset_fill_value(list, type, storage.fill.data());
  if (storage.more) storage.more(list);
  return list;
}

/// Gives the elements of rows that are never written the fill value.
inline void fill_unwritten(Model& model, const Storage& storage) {
  if (storage.written_rows < 0) return;
  const auto per_row = model.bytes.size() / static_cast<std::size_t>(model.shape[0]);
  std::vector<std::byte> fill = storage.fill;
  fill.resize(model.width());
  for (std::size_t at = static_cast<std::size_t>(storage.written_rows) * per_row; at < model.bytes.size();
       at += fill.size()) {
    std::copy(fill.begin(), fill.end(), model.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

/// Writes /X. What is not written holds the fill value in the model afterwards.
inline void write_model(const std::string& path, Model& model, const Storage& storage, const char* name = "/X") {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
  if (storage.latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  H5Pset_userblock(creation, static_cast<hsize_t>(storage.user_block));
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), type = stored_type(model.type);
  const std::vector<hsize_t> shape(model.shape.begin(), model.shape.end()), most(shape.size(), H5S_UNLIMITED);
  const int axes = static_cast<int>(shape.size());
  const hid_t space = H5Screate_simple(axes, shape.data(), storage.chunk.empty() ? nullptr : most.data());
  const hid_t list = creation_list(model, storage, type);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  ASSERT_GE(dataset, 0) << "the test cannot make its file";
  fill_unwritten(model, storage);
  std::vector<hsize_t> start(shape.size(), 0), count = shape;
  if (storage.written_rows >= 0) count[0] = static_cast<hsize_t>(storage.written_rows);
  if (count[0] > 0) {
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    const hid_t memory = H5Screate_simple(axes, count.data(), nullptr);
    ASSERT_GE(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, model.bytes.data()), 0);
    H5Sclose(memory);
  }
  H5Dclose(dataset);
  for (const hid_t list_id : {list, creation, access}) H5Pclose(list_id);
  H5Tclose(type);
  H5Sclose(space);
  H5Fclose(file);
}

/// A buffer as sources want it, filled with a pattern, with a guard behind it.
class PoisonedBuffer {
 public:
  explicit PoisonedBuffer(std::size_t bytes)
      : bytes_(bytes), memory_(static_cast<std::byte*>(pool_.allocate(bytes + kGuard))) {
    std::memset(memory_, 0xA5, bytes + kGuard);
  }
  PoisonedBuffer(const PoisonedBuffer&) = delete;
  PoisonedBuffer& operator=(const PoisonedBuffer&) = delete;
  ~PoisonedBuffer() { pool_.release(memory_, bytes_ + kGuard); }
  std::span<std::byte> span() const { return {memory_, bytes_}; }
  bool guard_is_whole() const {
    return std::all_of(memory_ + bytes_, memory_ + bytes_ + kGuard, [](std::byte b) { return b == std::byte{0xA5}; });
  }

 private:
  static constexpr std::size_t kGuard = 256;
  MemoryPool pool_;
  std::size_t bytes_;
  std::byte* memory_;
};

/// Reads the rows and says whether they are the model's, to the byte.
inline ::testing::AssertionResult reads_as(Source& source, const Model& model, RowRange range) {
  const PoisonedBuffer buffer(source.bytes_for(range));
  const SourceRows got = source.read(range, buffer.span());
  const auto& dense = std::get<DenseRows>(got.rows);
  if (!buffer.guard_is_whole()) return ::testing::AssertionFailure() << "wrote behind the buffer";
  if (dense.rows != range.count || dense.type != model.type || dense.columns != source.info().columns) {
    return ::testing::AssertionFailure() << "rows, columns or type are wrong";
  }
  const std::vector<std::byte> want = model.rows(source.info().row_axis, range);
  const std::size_t row_bytes = static_cast<std::size_t>(dense.columns) * model.width();
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto* row = dense.data + static_cast<std::size_t>(i * dense.stride) * model.width();
    if (std::memcmp(row, want.data() + static_cast<std::size_t>(i) * row_bytes, row_bytes) != 0) {
      return ::testing::AssertionFailure() << "row " << range.first + i << " differs";
    }
  }
  return ::testing::AssertionSuccess();
}

inline InputRequest request_for(const std::string& input, int row_axis = 0) {
  InputRequest request;
  request.inputs = {input};
  request.row_axis = row_axis;
  return request;
}

inline std::unique_ptr<Source> open_source(const InputRequest& request) {
  return make_source(plan_input(request), request);
}

/// The error that `body` throws; fails the test if it throws none.
inline Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(ExitCode::ok, "");
}

inline std::string describe(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += std::to_string(extent) + " ";
  return text;
}

inline std::uint64_t fresh_seed() {
  return std::random_device{}();
}

inline const std::vector<DType>& all_types() {
  static const std::vector<DType> types = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                           DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};
  return types;
}

}  // namespace rowmill::test
