#pragma once
// What the program and its HDF5 helper say to each other over a socket: a header, a JSON object, a binary tail. Both
// run on one machine, so numbers lie in its byte order. Blocks travel through memory that both have mapped.
//
// Requests: {"op": "list", "format": f} with tail "FILE"; {"op": "plan", "axis": a, "format": f} and {"op": "open",
// "axis": a, "cache": bytes, "slots": n} with tail "FILE\0DATASET"; {"op": "read", "first": r, "count": n} of the
// opened data set; {"op": "chunks"} with the grid indices of storage chunks as tail. Answers: {"error": text, "usage":
// bool} or what the operation gives (plan.hpp makes a plan, with the storage-chunk table as tail; a group that is one
// matrix gives {"group": "sparse" | "columns", …} and the names of its parts below it, of which plans are asked in
// turn; listing.cpp a list; a read gives {"bytes": n, "asked": bytes asked of the file}; "chunks" gives entries as
// tail, of as many of the storage chunks as there was room for, at least one).
#include <cstdint>

namespace rowmill::h5 {

inline constexpr std::uint32_t kMagic = 0x35684d52;  // "RMh5"
inline constexpr int kSocket = 3;                    // descriptors of the helper
inline constexpr int kSharedMemory = 4;
inline constexpr std::uint32_t kMaxJsonBytes = 8u << 20;
inline constexpr std::uint64_t kMaxTailBytes = 64u << 20;

/// Past this many storage chunks their addresses are not listed, and their bytes are fetched through the helper. HDF5
/// 1.10.8 walks the whole table at each look-up (20 ms for 2,048, hours for a million); where the library has
/// H5Dchunk_iter one walk gives all.
inline constexpr std::int64_t kMaxListedChunks = 4096, kMaxIteratedChunks = 1 << 21;

/// Processor seconds that the helper may spend on the metadata of a file; a sound file needs milliseconds.
inline constexpr int kMetadataSeconds = 8;

struct MessageHeader {
  std::uint32_t magic = kMagic;
  std::uint32_t json_bytes = 0;
  std::uint64_t tail_bytes = 0;
};

/// One storage chunk that is in the file.
struct ChunkEntry {
  std::int64_t grid_index = 0;  ///< of the chunk in the grid of chunks, row-major
  std::int64_t address = 0;  ///< byte of the file; in the answer to "chunks", of the shared memory (-1: never written)
  std::int64_t bytes = 0;    ///< as stored
  std::uint32_t mask = 0;    ///< bit i is set: the chunk did not go through filter i
  std::uint32_t unused = 0;
};

/// The most that a storage chunk may take in the file; filters that make values longer add little.
constexpr std::int64_t most_stored_bytes(std::int64_t chunk_bytes) {
  return 2 * chunk_bytes + (1 << 16);
}

}  // namespace rowmill::h5
