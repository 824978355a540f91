// What reading compressed storage chunks is measured against: HDF5's own H5Dread in a loop on one thread, and
// libdeflate alone on several. usage: chunk_rates FILE DATASET [THREADS]; /X of axes rows and columns, float32, gzip
// last.
#include <fcntl.h>
#include <hdf5.h>
#include <libdeflate.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

namespace {

struct Chunk {
  haddr_t address;
  hsize_t bytes;
};

struct Matrix {
  hid_t dataset;
  hsize_t shape[2], chunk[2];
  std::vector<Chunk> chunks;
};

/// Beside other work the processor's time tells more than the clock's.
void say_time_of(const char* what, double bytes, const auto& body) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor_start = std::clock();
  body();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double processor = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
  std::printf("%s  %.3f s, %.3f s of processors, %.2f GB/s\n", what, seconds, processor, bytes / seconds / 1e9);
}

Matrix look_at(hid_t dataset) {
  Matrix matrix{dataset, {}, {}, {}};
  const hid_t space = H5Dget_space(dataset), list = H5Dget_create_plist(dataset);
  H5Sget_simple_extent_dims(space, matrix.shape, nullptr);
  H5Pget_chunk(list, 2, matrix.chunk);
  hsize_t count = 0;
  H5Dget_num_chunks(dataset, space, &count);
  for (hsize_t i = 0; i < count; ++i) {
    hsize_t first[2];
    unsigned mask = 0;
    Chunk chunk{};
    H5Dget_chunk_info(dataset, space, i, first, &mask, &chunk.address, &chunk.bytes);
    matrix.chunks.push_back(chunk);
  }
  return matrix;
}

/// Whole storage chunks of rows at a time, and their sum.
double read_all(const Matrix& matrix) {
  std::vector<float> rows(matrix.chunk[0] * matrix.shape[1]);
  const hid_t space = H5Dget_space(matrix.dataset);
  double sum = 0;
  for (hsize_t first = 0; first < matrix.shape[0]; first += matrix.chunk[0]) {
    const hsize_t start[2] = {first, 0};
    const hsize_t count[2] = {std::min(matrix.chunk[0], matrix.shape[0] - first), matrix.shape[1]};
    const hid_t memory = H5Screate_simple(2, count, nullptr);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr);
    if (H5Dread(matrix.dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, rows.data()) < 0) std::exit(1);
    H5Sclose(memory);
    float part = 0;
    for (hsize_t i = 0; i < count[0] * count[1]; i += 16) part += rows[i];
    sum += static_cast<double>(part);
  }
  return sum;
}

void inflate_all(const Matrix& matrix, const char* path, int threads) {
  const std::size_t room = matrix.chunk[0] * matrix.chunk[1] * sizeof(float);
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      const int file = ::open(path, O_RDONLY | O_CLOEXEC);
      const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflate(
          libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
      std::vector<char> stored(2 * room + 65536), decoded(room);
      for (std::size_t i = next++; i < matrix.chunks.size(); i = next++) {
        const Chunk& chunk = matrix.chunks[i];
        std::size_t got = 0;
        if (chunk.bytes > stored.size() ||
            ::pread(file, stored.data(), chunk.bytes, static_cast<off_t>(chunk.address)) !=
                static_cast<ssize_t>(chunk.bytes) ||
            libdeflate_zlib_decompress(inflate.get(), stored.data(), chunk.bytes, decoded.data(), room, &got) !=
                LIBDEFLATE_SUCCESS) {
          std::exit(1);
        }
      }
      ::close(file);
    });
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  const Matrix matrix = look_at(H5Dopen2(file, argv[2], H5P_DEFAULT));
  const double bytes = static_cast<double>(matrix.shape[0] * matrix.shape[1] * sizeof(float));
  say_time_of("libdeflate alone", bytes, [&] { inflate_all(matrix, argv[1], threads); });
  double sum = 0;
  say_time_of("H5Dread in a loop on one thread", bytes, [&] { sum = read_all(matrix); });
  std::printf("(sum %g)\n", sum);
}
