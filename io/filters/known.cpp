// What is known of filters without any library: linked into the HDF5 helper as well.
#include <array>

#include "io/filters/undo.hpp"

namespace rowmill {

namespace {

struct KnownFilter {
  std::uint32_t id;
  const char* name;
};

// Ids below 256 are HDF5's own (H5Zpublic.h); the others are from the HDF Group's list of registered filters.
constexpr std::array kKnown = {KnownFilter{1, "gzip"},           KnownFilter{2, "shuffle"},
                               KnownFilter{3, "fletcher32"},     KnownFilter{4, "szip"},
                               KnownFilter{5, "n-bit"},          KnownFilter{6, "scale-offset"},
                               KnownFilter{305, "lzo"},          KnownFilter{307, "bzip2"},
                               KnownFilter{32000, "lzf"},        KnownFilter{32001, "blosc"},
                               KnownFilter{32002, "mafisc"},     KnownFilter{32003, "snappy"},
                               KnownFilter{32004, "lz4"},        KnownFilter{32005, "apax"},
                               KnownFilter{32006, "cbf"},        KnownFilter{32007, "jpeg-xr"},
                               KnownFilter{32008, "bitshuffle"}, KnownFilter{32009, "spdp"},
                               KnownFilter{32010, "lpc-rice"},   KnownFilter{32011, "ccsds-123"},
                               KnownFilter{32012, "jpeg-ls"},    KnownFilter{32013, "zfp"},
                               KnownFilter{32014, "fpzip"},      KnownFilter{32015, "zstd"},
                               KnownFilter{32016, "b3d"},        KnownFilter{32017, "sz"},
                               KnownFilter{32018, "fcidecomp"},  KnownFilter{32019, "jpeg"},
                               KnownFilter{32020, "vbz"},        KnownFilter{32021, "faster"},
                               KnownFilter{32022, "bitgroom"},   KnownFilter{32023, "granular bitround"},
                               KnownFilter{32024, "sz3"},        KnownFilter{32025, "delta-rice"},
                               KnownFilter{32026, "blosc2"},     KnownFilter{32027, "flac"}};

/// Values as H5Z_SZIP_* order them: options, pixels a block, bits a pixel, pixels a scan line. Bounds of szlib.h; a
/// line holds a block at least (H5Zszip.c).
std::string szip_fault(const std::vector<std::uint32_t>& values) {
  constexpr std::uint32_t kMostBlockPixels = 32, kMostLinePixels = 4096, kMostLineBlocks = 128;
  if (values.size() < 4) return "lacks client data";
  const std::uint32_t block = values[1], bits = values[2], line = values[3];
  if (block < 2 || block > kMostBlockPixels || block % 2 != 0) return "has an impossible block size";
  if (bits < 1 || (bits > 24 && bits != 32 && bits != 64)) return "has an impossible number of bits";
  if (line < block || line > kMostLinePixels || (line - 1) / block >= kMostLineBlocks) return "has an impossible line";
  return "";
}

/// Values: two of the version, bytes of an element, elements of a block (0: by itself), compression within.
std::string bitshuffle_fault(const std::vector<std::uint32_t>& values) {
  constexpr std::uint32_t kMostElementBytes = 1 << 16;
  if (values.size() < 3) return "lacks client data";
  if (values[2] < 1 || values[2] > kMostElementBytes) return "has an impossible element size";
  if (values.size() > 3 && values[3] % 8 != 0) return "has a block size that is no multiple of 8";
  if (values.size() > 4 && values[4] != 0 && values[4] != 2 && values[4] != 3) {
    return "has compression " + std::to_string(values[4]) + " within, which is not known";
  }
  return "";
}

std::string shuffle_fault(const std::vector<std::uint32_t>& values) {
  return values.empty() || values[0] == 0 ? "has no element size" : "";
}

}  // namespace

std::string name_of_filter(std::uint32_t id) {
  for (const KnownFilter& known : kKnown) {
    if (known.id == id) return known.name;
  }
  return "";
}

std::string why_not_decoded(const FilterStep& step) {
  const std::string name = name_of_filter(step.id);
  const std::string who = "filter " + std::to_string(step.id) + " (" + (name.empty() ? "unknown" : name) + ") ";
  std::string fault;
  switch (step.id) {
    case filters::kDeflate:
    case filters::kFletcher32:
    case filters::kLzf:
    case filters::kBlosc:
    case filters::kLz4:
    case filters::kZstd:
      break;
    case filters::kShuffle:
      fault = shuffle_fault(step.values);
      break;
    case filters::kSzip:
      fault = szip_fault(step.values);
      break;
    case filters::kBitshuffle:
      fault = bitshuffle_fault(step.values);
      break;
    default:
      return who + "is not decoded here";
  }
  return fault.empty() ? "" : who + fault;
}

}  // namespace rowmill
