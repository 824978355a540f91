// usage: filter_seeds FOLDER: writes the inputs that filters_fuzz begins with, one for each filter and some chains.
#include <libaec.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/fuzz/filter_input.hpp"
#include "tests/io/filter_frames.hpp"

namespace rowmill::test {
namespace {

std::string folder;

void write_seed(const std::string& name, const std::vector<FilterStep>& steps, std::size_t bytes,
                const Buffer& stored) {
  Buffer out;
  append_number(out, steps.size(), 1, false);
  append_number(out, 0, 1, false);
  append_number(out, bytes, 2, false);
  for (const FilterStep& step : steps) {
    const auto* place = std::find(kFuzzedFilters.begin(), kFuzzedFilters.end(), step.id);
    append_number(out, static_cast<std::uint64_t>(place - kFuzzedFilters.begin()), 1, false);
    append_number(out, step.values.size(), 1, false);
    for (const std::uint32_t value : step.values) append_number(out, value, 4, false);
  }
  out = joined(out, stored);
  std::ofstream(folder + "/" + name, std::ios::binary)
      .write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size()));
}

/// Lines of whole blocks, so that nothing is padded.
Buffer szip_of_bytes(const Buffer& data, unsigned block, unsigned line) {
  Buffer coded(2 * data.size());
  aec_stream stream = {};
  stream.bits_per_sample = 8;
  stream.block_size = block;
  stream.rsi = line / block;
  stream.flags = AEC_NOT_ENFORCE | AEC_DATA_PREPROCESS;
  stream.next_in = reinterpret_cast<const unsigned char*>(data.data());
  stream.avail_in = data.size();
  stream.next_out = reinterpret_cast<unsigned char*>(coded.data());
  stream.avail_out = coded.size();
  if (aec_buffer_encode(&stream) != AEC_OK) throw std::runtime_error("libaec cannot encode");
  coded.resize(stream.total_out);
  Buffer head;
  append_number(head, data.size(), 4, false);
  return joined(head, coded);
}

void write_seeds() {
  Buffer data(600);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i % 4 == 0 ? i * 7 : i / 256);
  write_seed("gzip", {{1, {4}}}, 600, gzip(data));
  write_seed("gzip_stored", {{1, {4}}}, 600, gzip(data, 0));
  write_seed("shuffle_4", {{2, {4}}}, 600, shuffled(data, 4));
  write_seed("shuffle_12", {{2, {12}}}, 600, shuffled(data, 12));
  write_seed("fletcher32", {{3, {}}}, 600, with_fletcher32(data));
  write_seed("lzf", {{32000, {4, 261, 600}}}, 600, lzf(data));
  write_seed("lz4", {{32004, {}}}, 600, lz4_frame(data, 256));
  write_seed("zstd", {{32015, {3}}}, 600, zstd_frame(data));
  for (const char* codec : {"blosclz", "lz4", "zlib", "zstd"}) {
    write_seed(std::string("blosc_") + codec, {{32001, {2, 2, 4, 600, 5, 1, 0}}}, 600, blosc_frame(data, 4, codec, 1));
  }
  write_seed("blosc_bits", {{32001, {2, 2, 4, 600, 5, 2, 0}}}, 600, blosc_frame(data, 4, "lz4", 2));
  for (const std::uint32_t compression : {0U, 2U, 3U}) {
    write_seed("bitshuffle_" + std::to_string(compression), {{32008, {0, 3, 4, 64, compression}}}, 600,
               bitshuffle_frame(data, 4, 64, compression));
  }
  write_seed("szip_8", {{4, {169, 8, 8, 200}}}, 600, szip_of_bytes(data, 8, 200));
  write_seed("szip_32", {{4, {169, 10, 32, 40}}}, 600, szip_of_bytes(shuffled(data, 4), 10, 40));
  write_seed("shuffle_gzip", {{2, {4}}, {1, {4}}}, 600, gzip(shuffled(data, 4)));
  write_seed("shuffle_lzf_fletcher32", {{2, {4}}, {32000, {4, 261, 600}}, {3, {}}}, 600,
             with_fletcher32(lzf(shuffled(data, 4))));
  write_seed("fletcher32_lz4_zstd", {{3, {}}, {32004, {}}, {32015, {3}}}, 600,
             zstd_frame(lz4_frame(with_fletcher32(data), 256)));
  write_seed("no_steps", {}, 600, data);
}

}  // namespace
}  // namespace rowmill::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: filter_seeds FOLDER\n");
    return 2;
  }
  rowmill::test::folder = argv[1];
  rowmill::test::write_seeds();
}
