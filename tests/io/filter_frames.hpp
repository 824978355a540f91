#pragma once
// Filters applied, for tests that undo them: by the libraries, or in the plainest way that a format allows.
#include <blosc.h>
#include <libdeflate.h>
#include <lz4.h>
#include <lzf.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/filters/filters.hpp"

namespace rowmill::test {

using Buffer = std::vector<std::byte>;

inline void append_number(Buffer& to, std::uint64_t value, int bytes, bool big) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<std::byte>(value >> 8 * (big ? bytes - 1 - i : i)));
}

inline Buffer joined(Buffer head, const Buffer& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

inline Buffer gzip(const Buffer& data, int level = 4) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(level);
  Buffer out(libdeflate_zlib_compress_bound(compressor, data.size()));
  out.resize(libdeflate_zlib_compress(compressor, data.data(), data.size(), out.data(), out.size()));
  libdeflate_free_compressor(compressor);
  return out;
}

inline Buffer shuffled(const Buffer& data, std::size_t width) {
  const std::size_t count = data.size() / width;
  Buffer out = data;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t s = 0; s < width; ++s) out[s * count + i] = data[i * width + s];
  }
  return out;
}

/// The definition, word by word.
inline std::uint32_t plain_fletcher32(const Buffer& data) {
  std::uint64_t sum = 0, sum_of_sums = 0;
  for (std::size_t i = 0; i < data.size(); i += 2) {
    const auto low = i + 1 < data.size() ? std::to_integer<std::uint64_t>(data[i + 1]) : 0;
    sum += std::to_integer<std::uint64_t>(data[i]) << 8 | low;
    sum = (sum & 0xffff) + (sum >> 16);
    sum_of_sums += sum;
    sum_of_sums = (sum_of_sums & 0xffff) + (sum_of_sums >> 16);
  }
  return static_cast<std::uint32_t>(sum_of_sums << 16 | sum);
}

inline Buffer with_fletcher32(Buffer data) {
  const std::uint32_t sum = plain_fletcher32(data);
  append_number(data, sum, 4, false);
  return data;
}

/// As h5py does: what does not shrink is an error of the filter there, and is not stored by it.
inline Buffer lzf(const Buffer& data) {
  Buffer out(data.size() + data.size() / 16 + 64);
  out.resize(
      lzf_compress(data.data(), static_cast<unsigned>(data.size()), out.data(), static_cast<unsigned>(out.size())));
  return out;
}

inline Buffer lz4_block(const Buffer& data) {
  Buffer out(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(data.size()))));
  out.resize(static_cast<std::size_t>(
      LZ4_compress_default(reinterpret_cast<const char*>(data.data()), reinterpret_cast<char*>(out.data()),
                           static_cast<int>(data.size()), static_cast<int>(out.size()))));
  return out;
}

inline Buffer lz4_frame(const Buffer& data, std::size_t block) {
  Buffer out;
  append_number(out, data.size(), 8, true);
  append_number(out, block, 4, true);
  for (std::size_t at = 0; at < data.size(); at += block) {
    const Buffer plain(data.begin() + static_cast<std::ptrdiff_t>(at),
                       data.begin() + static_cast<std::ptrdiff_t>(std::min(at + block, data.size())));
    Buffer stored = lz4_block(plain);
    if (stored.size() >= plain.size()) stored = plain;
    append_number(out, stored.size(), 4, true);
    out = joined(out, stored);
  }
  return out;
}

inline Buffer zstd_frame(const Buffer& data, int level = 3) {
  Buffer out(ZSTD_compressBound(data.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), data.data(), data.size(), level));
  return out;
}

inline Buffer blosc_frame(const Buffer& data, std::size_t width, const std::string& codec, int shuffle, int level = 5) {
  Buffer out(data.size() + BLOSC_MAX_OVERHEAD);
  const int bytes =
      blosc_compress_ctx(level, shuffle, width, data.size(), data.data(), out.data(), out.size(), codec.c_str(), 0, 1);
  if (bytes <= 0) throw std::runtime_error("this library has no " + codec);
  out.resize(static_cast<std::size_t>(bytes));
  return out;
}

/// Bit b of byte j of element i becomes bit i of row j * 8 + b.
inline Buffer bits_shuffled(const Buffer& block, std::size_t width) {
  const std::size_t count = block.size() / width;
  Buffer out(block.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t bit = 0; bit < 8 * width; ++bit) {
      const auto value = std::to_integer<unsigned>(block[i * width + bit / 8]) >> bit % 8 & 1U;
      out[bit * (count / 8) + i / 8] |= static_cast<std::byte>(value << i % 8);
    }
  }
  return out;
}

/// `block` in elements; compression as the filter's client data says it.
inline Buffer bitshuffle_frame(const Buffer& data, std::size_t width, std::size_t block, std::uint32_t compression) {
  Buffer out;
  if (compression != 0) {
    append_number(out, data.size(), 8, true);
    append_number(out, block * width, 4, true);
  }
  const std::size_t count = data.size() / width, whole = count / 8 * 8;
  for (std::size_t at = 0; at < whole; at += block) {
    const std::size_t end = std::min(at + block, whole);
    Buffer bits = bits_shuffled({data.begin() + static_cast<std::ptrdiff_t>(at * width),
                                 data.begin() + static_cast<std::ptrdiff_t>(end * width)},
                                width);
    if (compression == 2) bits = lz4_block(bits);
    if (compression == 3) bits = zstd_frame(bits);
    if (compression != 0) append_number(out, bits.size(), 4, true);
    out = joined(out, bits);
  }
  out.insert(out.end(), data.begin() + static_cast<std::ptrdiff_t>(whole * width), data.end());
  return out;
}

}  // namespace rowmill::test
