#pragma once
// Result files: written whole to a temporary beside the output, synced, then renamed.
#include <string>
#include <vector>

#include "core/result.hpp"

namespace rowmill {

/// Writes the sink's data sets and attributes (strings as UTF-8, numbers as int64 or float64) and, if not empty,
/// `column_names`. Throws Error(failed) and leaves nothing behind if it cannot; Error(usage) if `path` exists and
/// `overwrite` is false.
void write_result(const std::string& path, const ResultSink& sink, const std::vector<std::string>& column_names,
                  bool overwrite);

/// Before a long run: can the output be made there? Throws Error(usage) naming what is in the way; an output that is
/// the `input` itself, under whatever name, is refused even with `overwrite`.
void check_output(const std::string& path, bool overwrite, const std::string& input);

}  // namespace rowmill
