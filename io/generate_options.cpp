#include "io/generate_options.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rowmill {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;               ///< of a block where nothing else fixes it: stays in cache
constexpr std::int64_t kChunkBytesLimit = (1LL << 32) - 1;  ///< of HDF5
constexpr DType kTypes[] = {DType::f16, DType::f32, DType::f64, DType::i8,  DType::i16, DType::i32,
                            DType::i64, DType::u8,  DType::u16, DType::u32, DType::u64};

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::usage, "generate: " + what);
}

void check_storage(const GenerateOptions& options) {
  if (options.filter != "none" && options.filter != "gzip" && options.filter != "shuffle+gzip") {
    refuse("no filter '" + options.filter + "'; choose none, gzip or shuffle+gzip");
  }
  if (options.gzip_level < 0 || options.gzip_level > 9) refuse("gzip levels go from 0 to 9");
  if (options.chunk_rows < 0 || options.chunk_columns < 0 ||
      (options.chunk_rows == 0) != (options.chunk_columns == 0)) {
    refuse("storage chunks need positive rows and columns, as in --chunk 1024x64");
  }
  if (is_npy(options.path) && (options.chunk_rows != 0 || options.filter != "none")) {
    refuse(".npy files have neither storage chunks nor filters; choose an output that ends in .h5");
  }
  if (options.filter != "none" && options.chunk_rows == 0) {
    refuse("filter " + options.filter + " needs storage chunks: add --chunk ROWSxCOLUMNS, as in --chunk 1024x64");
  }
  if (options.dataset.find_first_not_of('/') == std::string::npos || (options.dataset + "/").starts_with("/planted/")) {
    refuse("'" + options.dataset + "' cannot be the data set; choose a name such as /X");
  }
}

void check_options(const GenerateOptions& options) {
  if (options.rows < 0 || options.columns < 1) refuse("a shape needs rows x columns with at least one column");
  std::int64_t row_bytes = 0, bytes = 0;
  // room for the doubles of a row and for counting in bits leaves no sum to overflow later
  if (__builtin_mul_overflow(options.columns, std::int64_t{64}, &row_bytes) ||
      __builtin_mul_overflow(row_bytes, std::max<std::int64_t>(options.rows, 1), &bytes)) {
    refuse("the shape is too large");
  }
  if (std::find(std::begin(kTypes), std::end(kTypes), options.type) == std::end(kTypes)) {
    parse_generated_type(name_of(options.type));  // throws, naming the choices
  }
  if (options.rank < 0 || options.rank > 65536) refuse("the rank goes from 0 to 65536");
  if (!(options.missing_share >= 0 && options.missing_share <= 1)) {
    refuse("the share of missing values goes from 0 to 1");
  }
  if (options.missing_share > 0 && !is_floating(options.type)) {
    refuse(name_of(options.type) + " has no NaN for missing values; choose a floating type");
  }
  if (options.noise && !(*options.noise >= 0)) refuse("the noise cannot be negative");
  check_storage(options);
}

/// Storage chunks as they will be: cut to the shape.
GenerateOptions with_storage_chunks(GenerateOptions options) {
  if (options.rows == 0) {  // storage chunks cannot be longer than what they hold
    options.chunk_rows = options.chunk_columns = 0;
    options.filter = "none";
  }
  options.chunk_rows = std::min(options.chunk_rows, options.rows);
  options.chunk_columns = std::min(options.chunk_columns, options.columns);
  if (options.chunk_rows >
      kChunkBytesLimit / element_bytes(options) / std::max<std::int64_t>(options.chunk_columns, 1)) {
    refuse("a storage chunk must be smaller than 4 GiB; choose a smaller --chunk");
  }
  return options;
}

}  // namespace

std::int64_t block_rows(const GenerateOptions& options) {
  const std::int64_t row_bytes = options.columns * element_bytes(options);
  const std::int64_t step = std::max<std::int64_t>(options.chunk_rows, 1);
  const std::int64_t rows = std::max<std::int64_t>(1, kPieceBytes / row_bytes / step) * step;
  const std::int64_t covariance = options.columns <= kCovarianceColumns ? options.columns * options.columns : 0;
  // the model and a row as doubles; then blocks with HDF5's copy of them, and before these the covariance, which a file
  // in memory holds a second and, while it grows, a third time
  const std::int64_t model = (options.rank + 5) * options.columns * 8;
  const std::int64_t need = model + std::max(rows * row_bytes * 2, covariance * (is_npy(options.path) ? 24 : 8));
  if (need > options.memory) {
    refuse("this shape, rank and chunk need " + format_size(need) + " of memory and may use " +
           format_size(options.memory) + "; choose fewer columns, a lower rank, or storage chunks of fewer rows");
  }
  return rows;
}

GenerateOptions checked(const GenerateOptions& requested) {
  check_options(requested);
  const GenerateOptions options = with_storage_chunks(requested);
  block_rows(options);
  return options;
}

DType parse_generated_type(const std::string& name) {
  std::string choices;
  for (const DType type : kTypes) {
    if (name_of(type) == name) return type;
    choices += (choices.empty() ? "" : ", ") + name_of(type);
  }
  refuse("no type '" + name + "'; choose one of " + choices);
}

}  // namespace rowmill
