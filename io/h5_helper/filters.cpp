#include "io/h5_helper/filters.hpp"

#include <array>

namespace rowmill::h5 {

namespace {

struct KnownFilter {
  H5Z_filter_t id;
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

std::string name_of_filter(H5Z_filter_t id, const char* stored) {
  for (const KnownFilter& known : kKnown) {
    if (known.id == id) return known.name;
  }
  return stored[0] == '\0' ? "unknown" : stored;
}

}  // namespace

std::vector<Filter> filters_of(hid_t creation) {
  std::vector<Filter> filters;
  const int count = must(H5Pget_nfilters(creation), "filters");
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::array<unsigned, 16> values = {};
    std::size_t value_count = values.size();
    std::array<char, 64> name = {};
    const H5Z_filter_t id = must(H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &value_count, values.data(),
                                                name.size() - 1, name.data(), &config),
                                 "filters");
    Filter filter{id, name_of_filter(id, name.data()), H5Zfilter_avail(id) > 0};
    H5Eclear2(H5E_DEFAULT);
    if (id == H5Z_FILTER_DEFLATE && value_count > 0) filter.text.append(" ").append(std::to_string(values[0]));
    filters.push_back(std::move(filter));
  }
  return filters;
}

}  // namespace rowmill::h5
