#pragma once
// What follows from the options of `generate` before anything is written.
#include <cstdint>
#include <string>

#include "io/generate.hpp"

namespace rowmill {

/// Up to this many columns the planted covariance is written.
inline constexpr std::int64_t kCovarianceColumns = 4096;

inline bool is_npy(const std::string& path) {
  return path.ends_with(".npy");
}
inline std::int64_t element_bytes(const GenerateOptions& options) {
  return static_cast<std::int64_t>(size_of(options.type));
}

/// The options with storage chunks as they will be: cut to the shape, none where there are no rows. Throws Error(usage)
/// for options that make no sense or need more memory than they allow.
GenerateOptions checked(const GenerateOptions& requested);

/// Rows of one block: about 1 MiB, whole storage chunks. Throws Error(usage) if the memory budget does not hold it.
std::int64_t block_rows(const GenerateOptions& options);

}  // namespace rowmill
