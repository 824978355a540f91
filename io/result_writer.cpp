#include "io/result_writer.hpp"

#include <filesystem>
#include <system_error>

#include "core/error.hpp"
#include "io/h5_write.hpp"
#include "io/output_file.hpp"

namespace rowmill {
namespace {

void fill(hid_t file, const ResultSink& sink, const std::vector<std::string>& column_names) {
  for (const auto& dataset : sink.datasets()) h5_write_doubles(file, dataset.name, dataset.shape, dataset.values);
  if (!column_names.empty()) h5_write_strings(file, "column_names", column_names);
  for (const auto& [name, value] : sink.attributes()) h5_write_attribute(file, name, value);
}

}  // namespace

void write_result(const std::string& path, const ResultSink& sink, const std::vector<std::string>& column_names,
                  bool overwrite) {
  OutputFile output(path, overwrite);
  const H5Quiet quiet;
  H5MemoryFile file;
  try {
    fill(file.id(), sink, column_names);
  } catch (const Error& error) {
    throw Error(error.code(), "result file " + path + ": " + error.what());
  }
  output.write(file.bytes());
  output.commit();
}

void check_output(const std::string& path, bool overwrite, const std::string& input) {
  std::error_code unknown;  // what cannot be looked at is not the same file
  if (std::filesystem::equivalent(path, input, unknown)) {
    throw Error(ExitCode::usage, "output " + path + " is the input itself; choose another");
  }
  check_output_path(path, overwrite);
}

}  // namespace rowmill
