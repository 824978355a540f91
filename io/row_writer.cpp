#include "io/row_writer.hpp"

#include <hdf5.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/h5_write.hpp"
#include "io/output_file.hpp"
#include "io/rank_meeting.hpp"

#ifndef H5_HAVE_PARALLEL
#error "the parallel build of HDF5 is needed"
#endif

namespace rowmill {
namespace {

// Values that must be converted first are converted in pieces that stay in the cache.
constexpr std::int64_t kConvertedPieceBytes = std::int64_t{1} << 20;
// More than HDF5 puts around one contiguous data set.
constexpr std::int64_t kFileOverhead = 16384;

template <typename T>
hid_t memory_type() {
  return std::is_same_v<T, double> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
}

}  // namespace

class RowWriter::Impl {
 public:
  Impl(const std::string& path, const RowOutput& output, std::int64_t total_rows, RowWriterOptions options)
      : path_(path),
        output_(output),
        total_rows_(total_rows),
        options_(std::move(options)),
        meeting_(options_.alone, options_.while_waiting) {
    if (total_rows < 0 || output.width < 0 || options_.piece_bytes < 8) throw std::invalid_argument("row output");
    together([&] {
      if (meeting_.rank() != 0) return;
      target_.emplace(path_, options_.overwrite, Temporary::named);
      try_size();
    });
    temporary_ = meeting_.text_of_rank_zero(target_ ? target_->temporary() : std::string());
    try {
      together([&] { create(); });
    } catch (...) {
      give_up();
      throw;
    }
  }

  ~Impl() {
    if (!finished_) give_up();
  }

  template <typename Given>
  void write(RowRange rows, std::span<const Given> values) {
    if (rows.first < 0 || rows.count < 0 || rows.end() > total_rows_) throw std::invalid_argument("rows of an output");
    if (static_cast<std::int64_t>(values.size()) != rows.count * output_.width) {
      throw std::invalid_argument("values of an output's rows");
    }
    const H5Quiet quiet;
    try {
      output_.as_float32 ? write_as<float>(rows, values) : write_as<double>(rows, values);
    } catch (const Error& error) {
      // MPI does not say why.
      const char* advice = meeting_.alone() ? "" : "; is the disk full?";
      failure_ = Error(error.code(), error.what() + std::string(advice));
      throw *failure_;
    }
    rows_written_ += rows.count;
  }

  void finish() {
    meeting_.throw_if_any(failure_);
    const std::int64_t written = meeting_.sum(rows_written_);
    if (written != total_rows_) {
      throw Error(ExitCode::failed, "cannot write " + path_ + ": " + std::to_string(written) + " of " +
                                        std::to_string(total_rows_) + " rows were given");
    }
    // One step after the other: closing is collective, and a rank that failed before would not come to it.
    together([&] { flush(); });
    together([&] { close(); });
    together([&] {
      if (target_) target_->commit();
    });
    finished_ = true;
  }

 private:
  /// Runs `body` on every rank; an error of one is thrown on all.
  template <typename Body>
  void together(const Body& body) {
    std::optional<Error> error;
    try {
      body();
    } catch (const Error& caught) {
      error = caught;
    }
    meeting_.throw_if_any(error);
  }

  /// A file that may not become so long is found out before HDF5 has it: HDF5 cannot close a file that it cannot
  /// extend, and crashes over it when the program ends.
  void try_size() const {
    const std::int64_t element = output_.as_float32 ? 4 : 8;
    const char* const name = target_->temporary().c_str();
    if (::truncate(name, total_rows_ * output_.width * element + kFileOverhead) != 0) {
      throw system_error(ExitCode::failed, "cannot write " + path_, errno);
    }
    if (::truncate(name, 0) != 0) throw system_error(ExitCode::failed, "cannot write " + path_, errno);
  }

  void create() {
    const H5Quiet quiet;
    const H5Handle access = h5_own(H5Pcreate(H5P_FILE_ACCESS), path_);
    transfer_ = h5_own(H5Pcreate(H5P_DATASET_XFER), path_);
    if (!meeting_.alone()) {
      h5_check(H5Pset_fapl_mpio(access.get(), MPI_COMM_WORLD, MPI_INFO_NULL), path_);
      // Ranks have unequal numbers of pieces: none waits for another's.
      h5_check(H5Pset_dxpl_mpio(transfer_.get(), H5FD_MPIO_INDEPENDENT), path_);
    }
    file_ = h5_own(H5Fcreate(temporary_.c_str(), H5F_ACC_TRUNC, h5_file_creation().get(), access.get()), path_);
    const std::array<hsize_t, 2> extent{static_cast<hsize_t>(total_rows_), static_cast<hsize_t>(output_.width)};
    space_ = h5_own(H5Screate_simple(2, extent.data(), nullptr), path_);
    const H5Handle creation = h5_dataset_creation();
    h5_check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), path_);
    h5_check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), path_);  // every row is written
    const H5Handle links = h5_own(H5Pcreate(H5P_LINK_CREATE), path_);
    h5_check(H5Pset_create_intermediate_group(links.get(), 1), path_);
    const hid_t type = output_.as_float32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    dataset_ = h5_own(
        H5Dcreate2(file_.get(), output_.name.c_str(), type, space_.get(), links.get(), creation.get(), H5P_DEFAULT),
        path_);
    // The file has its full length from here on: if the run fails, nothing is left to do when HDF5 closes it at the
    // end.
    flush();
  }

  /// Calls write_piece for parts of at most piece_bytes: whole rows, or parts of one row where rows are longer.
  template <typename Stored, typename Given>
  void write_as(RowRange rows, std::span<const Given> values) {
    constexpr bool converted = !std::is_same_v<Stored, Given>;
    const std::int64_t most =
        (converted ? std::min(options_.piece_bytes, kConvertedPieceBytes) : options_.piece_bytes) /
        static_cast<std::int64_t>(sizeof(Stored));
    const std::int64_t columns = std::min(most, output_.width);
    if (columns == 0) return;
    const std::int64_t lines = columns < output_.width ? 1 : most / columns;
    for (std::int64_t row = 0; row < rows.count; row += lines) {
      const std::int64_t row_count = std::min(lines, rows.count - row);
      for (std::int64_t column = 0; column < output_.width; column += columns) {
        const std::int64_t column_count = std::min(columns, output_.width - column);
        const Given* const part = values.data() + row * output_.width + column;
        write_piece<Stored>(RowRange{rows.first + row, row_count}, RowRange{column, column_count}, part);
      }
    }
  }

  template <typename Stored, typename Given>
  void write_piece(RowRange rows, RowRange columns, const Given* values) {
    const auto count = static_cast<std::size_t>(rows.count * columns.count);
    const void* stored = values;
    std::vector<Stored> converted;
    if constexpr (!std::is_same_v<Stored, Given>) {
      converted.resize(count);
      std::transform(values, values + count, converted.begin(), [](Given value) { return static_cast<Stored>(value); });
      stored = converted.data();
    }
    const std::array<hsize_t, 2> start{static_cast<hsize_t>(rows.first), static_cast<hsize_t>(columns.first)};
    const std::array<hsize_t, 2> extent{static_cast<hsize_t>(rows.count), static_cast<hsize_t>(columns.count)};
    const std::string what = "rows " + std::to_string(rows.first) + ":" + std::to_string(rows.end()) + " of " + path_;
    h5_check(H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr), what);
    const H5Handle memory = h5_own(H5Screate_simple(2, extent.data(), nullptr), what);
    h5_check(H5Dwrite(dataset_.get(), memory_type<Stored>(), memory.get(), space_.get(), transfer_.get(), stored),
             what);
  }

  void flush() {
    const H5Quiet quiet;
    h5_check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), path_);
  }

  void close() {
    const H5Quiet quiet;
    h5_check(H5Dclose(leave_open(dataset_)), path_);
    h5_check(H5Fclose(leave_open(file_)), path_);
  }

  void give_up() noexcept {
    const H5Quiet quiet;
    if (target_) target_->discard_contents();
    if (meeting_.alone()) {
      dataset_ = H5Handle();
      file_ = H5Handle();
    } else {
      // Not closed here: that would wait for ranks that may never come.
      leave_open(dataset_);
      leave_open(file_);
    }
  }

  /// The id, which nobody owns any more.
  static hid_t leave_open(H5Handle& handle) {
    const hid_t id = handle.get();
    if (id >= 0) H5Iinc_ref(id);
    handle = H5Handle();
    return id;
  }

  std::string path_;
  RowOutput output_;
  std::int64_t total_rows_ = 0, rows_written_ = 0;
  RowWriterOptions options_;
  RankMeeting meeting_;
  std::optional<OutputFile> target_;  // on rank 0
  std::string temporary_;
  H5Handle transfer_, space_, file_, dataset_;
  std::optional<Error> failure_;  // of this rank's writes
  bool finished_ = false;
};

RowWriter::RowWriter(const std::string& path, const RowOutput& output, std::int64_t total_rows,
                     RowWriterOptions options)
    : impl_(std::make_unique<Impl>(path, output, total_rows, std::move(options))) {}

RowWriter::~RowWriter() = default;

void RowWriter::write(RowRange rows, std::span<const double> values) {
  impl_->write(rows, values);
}
void RowWriter::write(RowRange rows, std::span<const float> values) {
  impl_->write(rows, values);
}
void RowWriter::finish() {
  impl_->finish();
}

}  // namespace rowmill
