// Undoing filters on one thread: each through FilterChain, and beside it what its library alone does with the same
// bytes
// ("bare"). Rates count decoded bytes: a storage chunk of 1 MiB of float32 values that grow slowly.
#include <benchmark/benchmark.h>
#include <libaec.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "tests/io/filter_frames.hpp"

namespace {

using namespace rowmill;
using namespace rowmill::test;

constexpr std::size_t kBytes = 1 << 20, kWidth = 4;

/// A random walk with 12 significant bits.
const Buffer& data() {
  static const Buffer bytes = [] {
    std::mt19937_64 random(1);
    std::normal_distribution<double> step;
    std::vector<float> values(kBytes / kWidth);
    double at = 100;
    for (float& value : values) {
      at += step(random) * 0.1;
      value = static_cast<float>(std::round(at * 32) / 32);
    }
    Buffer result(kBytes);
    std::memcpy(result.data(), values.data(), kBytes);
    return result;
  }();
  return bytes;
}

Buffer szip(const Buffer& plain) {
  Buffer coded(2 * plain.size());
  aec_stream stream = {};
  stream.bits_per_sample = 8;
  stream.block_size = 32;
  stream.rsi = 16;
  stream.flags = AEC_NOT_ENFORCE | AEC_DATA_PREPROCESS;
  stream.next_in = reinterpret_cast<const unsigned char*>(plain.data());
  stream.avail_in = plain.size();
  stream.next_out = reinterpret_cast<unsigned char*>(coded.data());
  stream.avail_out = coded.size();
  aec_buffer_encode(&stream);
  coded.resize(stream.total_out);
  return coded;
}

void rates(benchmark::State& state, std::size_t stored) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes));
  state.counters["stored"] = static_cast<double>(stored) / static_cast<double>(kBytes);
}

void ours(benchmark::State& state, const std::vector<FilterStep>& steps, const Buffer& stored) {
  MemoryPool pool;
  FilterScratch scratch(pool);
  const FilterChain chain(steps);
  Buffer to(kBytes);
  for (auto _ : state) {
    chain.decode(stored, 0, to, scratch);
    benchmark::ClobberMemory();
  }
  if (to != data()) state.SkipWithError("wrong bytes");
  rates(state, stored.size());
}

void bare(benchmark::State& state, const Buffer& stored, const std::function<void(std::byte*)>& decode) {
  Buffer to(kBytes);
  for (auto _ : state) {
    decode(to.data());
    benchmark::ClobberMemory();
  }
  rates(state, stored.size());
}

void add(const std::string& name, std::vector<FilterStep> steps, Buffer stored,
         std::function<void(const Buffer&, std::byte*)> library = {}) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { ours(state, steps, stored); });
  if (!library) return;
  benchmark::RegisterBenchmark((name + "/bare").c_str(), [=](benchmark::State& state) {
    bare(state, stored, [&](std::byte* to) { library(stored, to); });
  });
}

void inflate(const Buffer& stored, std::byte* to) {
  static libdeflate_decompressor* decompressor = libdeflate_alloc_decompressor();
  libdeflate_zlib_decompress(decompressor, stored.data(), stored.size(), to, kBytes, nullptr);
}

void decode_szip(const Buffer& stored, std::byte* to) {
  aec_stream stream = {};
  stream.bits_per_sample = 8;
  stream.block_size = 32;
  stream.rsi = 16;
  stream.flags = AEC_DATA_PREPROCESS;
  stream.next_in = reinterpret_cast<const unsigned char*>(stored.data()) + 4;
  stream.avail_in = stored.size() - 4;
  stream.next_out = reinterpret_cast<unsigned char*>(to);
  stream.avail_out = kBytes;
  aec_buffer_decode(&stream);
}

/// The blocks of a frame of bitshuffle or LZ4, without anything else.
void decode_lz4_blocks(const Buffer& stored, std::byte* to) {
  int room = static_cast<int>(kBytes);
  for (std::size_t at = 12; at < stored.size() && room > 0;) {
    unsigned bytes = 0;
    for (std::size_t i = 0; i < 4; ++i) bytes = bytes << 8 | std::to_integer<unsigned>(stored[at + i]);
    const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data() + at + 4),
                                        reinterpret_cast<char*>(to), static_cast<int>(bytes), room);
    if (got <= 0) return;
    at += 4 + bytes;
    to += got;
    room -= got;
  }
}

void add_all() {
  const Buffer sorted = shuffled(data(), kWidth);
  const FilterStep shuffle{2, {kWidth}};
  add("copy", {}, data(), [](const Buffer& from, std::byte* to) { std::memcpy(to, from.data(), kBytes); });
  for (const std::uint32_t width : {2U, 4U, 8U, 16U, 12U}) {
    add("shuffle/" + std::to_string(width), {{2, {width}}}, shuffled(data(), width));
  }
  add("fletcher32", {{3, {}}}, with_fletcher32(data()));
  add("gzip", {{1, {4}}}, gzip(data()), inflate);
  add("shuffle+gzip", {shuffle, {1, {4}}}, gzip(sorted), inflate);
  add("shuffle+gzip+fletcher32", {shuffle, {1, {4}}, {3, {}}}, with_fletcher32(gzip(sorted)), inflate);
  Buffer head;
  append_number(head, kBytes, 4, false);
  add("szip", {{4, {169, 32, 32, 512}}}, joined(head, szip(sorted)), decode_szip);
  add("shuffle+lzf", {shuffle, {32000, {4, 261, 0}}}, lzf(sorted), [](const Buffer& from, std::byte* to) {
    lzf_decompress(from.data(), static_cast<unsigned>(from.size()), to, kBytes);
  });
  add("shuffle+lz4", {shuffle, {32004, {}}}, lz4_frame(sorted, 1 << 30), decode_lz4_blocks);
  add("shuffle+zstd", {shuffle, {32015, {}}}, zstd_frame(sorted), [](const Buffer& from, std::byte* to) {
    static ZSTD_DCtx* context = ZSTD_createDCtx();
    ZSTD_decompressDCtx(context, to, kBytes, from.data(), from.size());
  });
  for (const char* codec : {"blosclz", "lz4", "zstd"}) {
    add(std::string("blosc/") + codec, {{32001, {}}}, blosc_frame(data(), kWidth, codec, 1),
        [](const Buffer& from, std::byte* to) { blosc_decompress_ctx(from.data(), to, kBytes, 1); });
  }
  add("bitshuffle", {{32008, {0, 3, kWidth, 0, 0}}}, bitshuffle_frame(data(), kWidth, 2048, 0));
  add("bitshuffle+lz4", {{32008, {0, 3, kWidth, 0, 2}}}, bitshuffle_frame(data(), kWidth, 2048, 2), decode_lz4_blocks);
  add("bitshuffle+zstd", {{32008, {0, 3, kWidth, 0, 3}}}, bitshuffle_frame(data(), kWidth, 2048, 3));
}

}  // namespace

int main(int argc, char** argv) {
  add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
