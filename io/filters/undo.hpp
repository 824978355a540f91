#pragma once
// One function for each filter that is undone, in a file of its name. They write at most to.size() bytes, return how
// many, and throw FilterError; `to` does not overlap `from`. Client data has passed why_not_decoded.
#include "io/filters/filters.hpp"

namespace rowmill::filters {

inline constexpr std::uint32_t kDeflate = 1, kShuffle = 2, kFletcher32 = 3, kSzip = 4, kLzf = 32000, kBlosc = 32001,
                               kLz4 = 32004, kBitshuffle = 32008, kZstd = 32015;

using Bytes = std::span<const std::byte>;
using Room = std::span<std::byte>;

std::size_t undo_deflate(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);
std::size_t undo_shuffle(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);
std::size_t undo_szip(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);
std::size_t undo_lzf(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);
std::size_t undo_blosc(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);
std::size_t undo_lz4(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);
std::size_t undo_bitshuffle(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);
std::size_t undo_zstd(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);

/// The bytes in front of the checksum, which is verified.
Bytes verified_fletcher32(const FilterStep& step, Bytes from);

/// One Zstandard frame or several, as undo_zstd takes them; `step` is named in errors.
std::size_t decompress_zstd(const FilterStep& step, Bytes from, Room to, FilterScratch& scratch);

/// One bare LZ4 block, which must fill `to`.
void decompress_lz4_block(const FilterStep& step, Bytes from, Room to);

/// Memory that undo_szip takes within_step for so many bytes; undo_bitshuffle takes no more than those.
std::size_t szip_scratch_bytes(const FilterStep& step, std::size_t bytes);

/// Throws "filter 1 (gzip): what".
[[noreturn]] void fail(const FilterStep& step, const std::string& what);
/// Throws unless `bytes` fit into `to`.
void check_room(const FilterStep& step, std::uint64_t bytes, Room to);

/// Numbers of either byte order; the caller has checked that they are there.
std::uint32_t little_u32(Bytes from, std::size_t at);
std::uint32_t big_u32(Bytes from, std::size_t at);
std::uint64_t big_u64(Bytes from, std::size_t at);

}  // namespace rowmill::filters
