#pragma once
// What it costs that rows lie in tall storage chunks, and the cure.
#include <string>

#include "io/source.hpp"

namespace rowmill {

/// What it costs to decode bands of storage chunks whole, with rechunk_command(); empty where bands are low.
std::string band_cost(const SourceInfo& info);

/// "h5repack -l /X:CHUNK=256x1000 a.h5 b.h5": rows in storage chunks of about 1 MiB.
std::string rechunk_command(const SourceInfo& info);

}  // namespace rowmill
