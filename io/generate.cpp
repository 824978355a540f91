#include "io/generate.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/block.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "io/generate_options.hpp"
#include "io/h5_write.hpp"
#include "io/output_file.hpp"
#include "io/planted.hpp"

namespace rowmill {
namespace {

volatile std::sig_atomic_t interrupting_signal = 0;

/// While it lives, signals that ask for an end are kept for `check`, so that no half file is left behind.
class Interrupts {
 public:
  Interrupts() {
    interrupting_signal = 0;
    struct sigaction keep = {};
    keep.sa_handler = [](int signal) { interrupting_signal = signal; };
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &keep, &before_[i]);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

  static void check(const std::string& path) {
    if (interrupting_signal == 0) return;
    throw Error(ExitCode::failed, std::string("stopped by signal ") + std::to_string(interrupting_signal) + ": " +
                                      path + " was not written");
  }

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

/// Where blocks of rows go.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void put(RowRange rows, std::span<const std::byte> bytes) = 0;
};

void stream_rows(const GenerateOptions& options, const PlantedModel& model, RowSink& sink) {
  const std::int64_t rows_a_block = block_rows(options), row_bytes = options.columns * element_bytes(options);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(rows_a_block, options.rows) * row_bytes));
  std::vector<double> values(static_cast<std::size_t>(options.columns + 1)), scratch(model.scratch_size());
  const ElementType type{options.type, options.big_endian == (std::endian::native == std::endian::little)};
  for (std::int64_t first = 0; first < options.rows; first += rows_a_block) {
    const RowRange range{first, std::min(rows_a_block, options.rows - first)};
    Interrupts::check(options.path);
    for (std::int64_t i = 0; i < range.count; ++i) {
      model.fill_row(first + i, values.data(), scratch.data());
      encode_values(values.data(), options.columns, type, bytes.data() + i * row_bytes);
    }
    sink.put(range, std::span(bytes).first(static_cast<std::size_t>(range.count * row_bytes)));
  }
}

void write_planted(hid_t file, const GenerateOptions& options, const PlantedModel& model) {
  h5_write_doubles(file, "/planted/mean", {options.columns}, model.mean());
  h5_write_doubles(file, "/planted/std", {options.columns}, model.standard_deviation());
  if (options.columns <= kCovarianceColumns) {
    h5_write_doubles(file, "/planted/covariance", {options.columns, options.columns}, model.covariance());
  }
  const H5Handle group = h5_own(H5Gopen2(file, "/planted", H5P_DEFAULT), "/planted");
  h5_write_attribute(group.get(), "seed", static_cast<std::int64_t>(options.seed));
  h5_write_attribute(group.get(), "rank", options.rank);
  h5_write_attribute(group.get(), "noise", model.noise());
  h5_write_attribute(group.get(), "missing", options.missing_share);
}

std::string label(const GenerateOptions& options) {
  return options.path + ":" + options.dataset;
}

/// A stored type of HDF5 with the bytes in the order asked for.
H5Handle h5_type(const GenerateOptions& options) {
  const auto native = [&]() -> hid_t {
    switch (options.type) {
      case DType::f64:
        return H5T_NATIVE_DOUBLE;
      case DType::i8:
        return H5T_NATIVE_INT8;
      case DType::i16:
        return H5T_NATIVE_INT16;
      case DType::i32:
        return H5T_NATIVE_INT32;
      case DType::i64:
        return H5T_NATIVE_INT64;
      case DType::u8:
        return H5T_NATIVE_UINT8;
      case DType::u16:
        return H5T_NATIVE_UINT16;
      case DType::u32:
        return H5T_NATIVE_UINT32;
      case DType::u64:
        return H5T_NATIVE_UINT64;
      default:
        return H5T_NATIVE_FLOAT;
    }
  };
  H5Handle type = h5_own(H5Tcopy(native()), label(options));
  h5_check(H5Tset_order(type.get(), options.big_endian ? H5T_ORDER_BE : H5T_ORDER_LE), label(options));
  if (options.type == DType::f16) {  // IEEE 754 binary16, which HDF5 1.10 has no name for: shrink binary32
    h5_check(H5Tset_fields(type.get(), 15, 10, 5, 0, 10), label(options));
    h5_check(H5Tset_size(type.get(), 2), label(options));
    h5_check(H5Tset_ebias(type.get(), 15), label(options));
  }
  return type;
}

H5Handle create_dataset(hid_t file, const GenerateOptions& options, hid_t type) {
  const std::string name = label(options);
  const H5Handle creation = h5_dataset_creation();
  if (options.chunk_rows > 0) {
    const hsize_t chunk[] = {static_cast<hsize_t>(options.chunk_rows), static_cast<hsize_t>(options.chunk_columns)};
    h5_check(H5Pset_chunk(creation.get(), 2, chunk), name);
  }
  if (options.filter == "shuffle+gzip") h5_check(H5Pset_shuffle(creation.get()), name);
  if (options.filter != "none")
    h5_check(H5Pset_deflate(creation.get(), static_cast<unsigned>(options.gzip_level)), name);
  const H5Handle links = h5_own(H5Pcreate(H5P_LINK_CREATE), name);
  h5_check(H5Pset_create_intermediate_group(links.get(), 1), name);
  const hsize_t shape[] = {static_cast<hsize_t>(options.rows), static_cast<hsize_t>(options.columns)};
  const H5Handle space = h5_own(H5Screate_simple(2, shape, nullptr), name);
  return h5_own(H5Dcreate2(file, options.dataset.c_str(), type, space.get(), links.get(), creation.get(), H5P_DEFAULT),
                name);
}

class H5RowSink : public RowSink {
 public:
  H5RowSink(hid_t dataset, hid_t type, const GenerateOptions& options)
      : dataset_(dataset), type_(type), name_(label(options)), columns_(static_cast<hsize_t>(options.columns)) {
    file_space_ = h5_own(H5Dget_space(dataset), name_);
  }

  void put(RowRange rows, std::span<const std::byte> bytes) override {
    const hsize_t start[] = {static_cast<hsize_t>(rows.first), 0},
                  count[] = {static_cast<hsize_t>(rows.count), columns_};
    h5_check(H5Sselect_hyperslab(file_space_.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), name_);
    const H5Handle memory_space = h5_own(H5Screate_simple(2, count, nullptr), name_);
    h5_check(H5Dwrite(dataset_, type_, memory_space.get(), file_space_.get(), H5P_DEFAULT, bytes.data()), name_);
  }

 private:
  hid_t dataset_, type_;
  std::string name_;
  hsize_t columns_;
  H5Handle file_space_;
};

/// HDF5 must finish a file even when the disk is full: give it room again, since the file is thrown away anyway. Must
/// be destroyed before the handles are.
class RoomOnFailure {
 public:
  explicit RoomOnFailure(OutputFile& output) : output_(output) {}
  RoomOnFailure(const RoomOnFailure&) = delete;
  RoomOnFailure& operator=(const RoomOnFailure&) = delete;
  ~RoomOnFailure() {
    if (std::uncaught_exceptions() > exceptions_before_) output_.discard_contents();
  }

 private:
  OutputFile& output_;
  int exceptions_before_ = std::uncaught_exceptions();
};

void write_hdf5(const GenerateOptions& options, const PlantedModel& model, OutputFile& output) {
  const H5Handle access = h5_own(H5Pcreate(H5P_FILE_ACCESS), options.path);
  h5_check(H5Pset_file_locking(access.get(), false, true), options.path);
  H5Handle file = h5_own(H5Fcreate(output.temporary().c_str(), H5F_ACC_TRUNC, h5_file_creation().get(), access.get()),
                         options.path);
  const H5Handle type = h5_type(options);
  const H5Handle dataset = create_dataset(file.get(), options, type.get());
  H5RowSink sink(dataset.get(), type.get(), options);
  const RoomOnFailure room(output);
  write_planted(file.get(), options, model);
  stream_rows(options, model, sink);
  h5_check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), options.path);
}

class NpyRowSink : public RowSink {
 public:
  explicit NpyRowSink(OutputFile& output) : output_(output) {}
  void put(RowRange, std::span<const std::byte> bytes) override { output_.write(bytes); }

 private:
  OutputFile& output_;
};

/// Header of version 1.0 of NumPy's format (numpy.lib.format), padded so that data begin at a multiple of 64.
std::string npy_header(const GenerateOptions& options) {
  const std::string kind = is_floating(options.type) ? "f" : options.type >= DType::u8 ? "u" : "i";
  std::string text = "{'descr': '";
  text += element_bytes(options) == 1 ? "|" : options.big_endian ? ">" : "<";
  text += kind + std::to_string(element_bytes(options)) + "', 'fortran_order': False, 'shape': (" +
          std::to_string(options.rows) + ", " + std::to_string(options.columns) + "), }";
  constexpr std::size_t kPrefix = 10;
  text.resize((text.size() + 1 + kPrefix + 63) / 64 * 64 - kPrefix - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() % 256);
  header += static_cast<char>(text.size() / 256);
  return header + text;
}

void generate_npy(const GenerateOptions& options, const PlantedModel& model) {
  OutputFile answers(options.path + ".planted.h5", options.overwrite), output(options.path, options.overwrite);
  H5MemoryFile file;
  write_planted(file.id(), options, model);
  answers.write(file.bytes());
  const std::string header = npy_header(options);
  output.write(std::as_bytes(std::span(header)));
  NpyRowSink sink(output);
  stream_rows(options, model, sink);
  answers.commit();
  output.commit();
}

}  // namespace

namespace {

/// The least and greatest value of a type that data may have.
std::pair<double, double> range_of(DType type) {
  switch (type) {
    case DType::f16:
      return {-65504, 65504};
    case DType::f32:
      return {-std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
    case DType::f64:
      return {-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
    default: {
      const int bits = static_cast<int>(8 * size_of(type));
      const bool is_unsigned = type >= DType::u8;
      return {is_unsigned ? 0 : -std::ldexp(1.0, bits - 1), std::ldexp(1.0, is_unsigned ? bits : bits - 1)};
    }
  }
}

std::string short_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

/// Values that do not fit their type would be cut off, and the planted answers would not be theirs.
void check_model(const GenerateOptions& options, const PlantedModel& model) {
  const auto [least, greatest] = range_of(options.type);
  const std::vector<double> mean = model.mean(), deviation = model.standard_deviation();
  constexpr double kDeviations = 4;
  for (std::size_t j = 0; j < mean.size(); ++j) {
    const double reach = kDeviations * deviation[j];
    // the negation also holds for NaN; variances must fit too
    if (!(mean[j] - reach >= least && mean[j] + reach <= greatest && deviation[j] < 1e150)) {
      throw Error(ExitCode::usage, "column " + std::to_string(j) + " would have mean " + short_text(mean[j]) +
                                       " and standard deviation " + short_text(deviation[j]) +
                                       ", whose values do not fit " + name_of(options.type) +
                                       ": choose another --type, or smaller --mean-offset, --mean-spread, --noise or " +
                                       "--loading");
    }
  }
}

/// What is written without a filter is as large as it looks.
void check_space(const GenerateOptions& options) {
  struct statvfs disk = {};
  const auto slash = options.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : options.path.substr(0, slash + 1);
  if (options.filter != "none" || ::statvfs(folder.c_str(), &disk) != 0) return;
  const double need = static_cast<double>(options.rows) * static_cast<double>(options.columns * element_bytes(options));
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (need <= free) return;
  throw Error(ExitCode::usage, options.path + " would take " + format_size(static_cast<std::int64_t>(need)) + ", and " +
                                   format_size(static_cast<std::int64_t>(free)) +
                                   " are free there: choose a smaller --shape or another output");
}

}  // namespace

void skip_hdf5_cleanup_at_exit() {
  H5dont_atexit();
  H5open();  // now, so that it finds no MPI in whose end it could hang its cleanup
}

void generate(const GenerateOptions& requested) {
  const GenerateOptions options = checked(requested);
  check_output_path(options.path, options.overwrite);
  const PlantedModel model(options);
  check_model(options, model);
  check_space(options);
  const H5Quiet quiet;
  const Interrupts interrupts;
  if (is_npy(options.path)) return generate_npy(options, model);
  // HDF5 opens no file without a name
  OutputFile output(options.path, options.overwrite, Temporary::named);
  write_hdf5(options, model, output);
  output.commit();
}

}  // namespace rowmill
