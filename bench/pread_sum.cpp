// The limit that `stats` is measured against: threads that only read a file in pieces of 1 MiB into a reused buffer and
// add up its float32 values. usage: pread_sum FILE [THREADS]
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr std::int64_t piece = 1 << 20, huge_page = 2 << 20;

double sum_range(int file, std::int64_t first, std::int64_t end) {
  const std::unique_ptr<float, void (*)(void*)> memory(static_cast<float*>(std::aligned_alloc(huge_page, huge_page)),
                                                       std::free);
  madvise(memory.get(), huge_page, MADV_HUGEPAGE);
  std::array<float, 64> sums{};
  for (std::int64_t at = first; at < end; at += piece) {
    const ssize_t bytes = pread(file, memory.get(), static_cast<std::size_t>(std::min(piece, end - at)), at);
    if (bytes <= 0) break;
    const float* values = memory.get();
    for (std::int64_t i = 0; i + 64 <= bytes / 4; i += 64) {
      for (std::int64_t k = 0; k < 64; ++k) sums[static_cast<std::size_t>(k)] += values[i + k];
    }
  }
  double sum = 0;
  for (const float s : sums) sum += static_cast<double>(s);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const int file = open(argv[1], O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || threads < 1 || fstat(file, &status) != 0) return 1;
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> sums(static_cast<std::size_t>(threads));
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const std::int64_t share = status.st_size / threads / piece * piece;
      sums[static_cast<std::size_t>(t)] =
          sum_range(file, t * share, t + 1 == threads ? status.st_size : (t + 1) * share);
    });
  }
  for (auto& worker : workers) worker.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double sum = 0;
  for (const double s : sums) sum += s;
  std::printf("%.3f s, %.2f GB/s (sum %g)\n", seconds, static_cast<double>(status.st_size) / seconds / 1e9, sum);
  close(file);
}
