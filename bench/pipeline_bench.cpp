// The pipeline beside a plain loop: two threads that read a file of float32 by pread, a block at a time, and sum it.
//
//   pipeline_bench [FILE]   FILE: raw float32 of at least 1 GiB; without it a temporary one is written to TMPDIR
//
// The file should be in the page cache: what is measured is what the pipeline costs. Reported bytes_per_second of
// Pipeline over that of PlainLoop is the figure to watch (0.7 at least).
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "pipeline/block_pipeline.hpp"

namespace {

using namespace rowmill;

constexpr std::int64_t kColumns = 512, kBlockRows = 512;  // 1 MiB a block
constexpr std::int64_t kBlockBytes = kColumns * kBlockRows * 4;

class RawFileSource final : public Source {
 public:
  explicit RawFileSource(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (file_ < 0 || fstat(file_, &status) != 0) throw system_error(ExitCode::input, path, errno);
    info_.path = path;
    info_.rows = status.st_size / (kColumns * 4);
    info_.columns = kColumns;
    info_.type = {DType::f32, false};
  }
  RawFileSource(const RawFileSource&) = delete;
  RawFileSource& operator=(const RawFileSource&) = delete;
  ~RawFileSource() override { close(file_); }

  const SourceInfo& info() const override { return info_; }
  std::size_t bytes_for(RowRange rows) const override { return static_cast<std::size_t>(rows.count * kColumns * 4); }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    const std::size_t bytes = bytes_for(rows);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got =
          pread(file_, to.data() + done, bytes - done, rows.first * kColumns * 4 + static_cast<off_t>(done));
      if (got <= 0) throw system_error(ExitCode::input, info_.path, errno);
      done += static_cast<std::size_t>(got);
    }
    return {DenseRows{to.data(), info_.type, rows.count, kColumns, kColumns}, {}};
  }

 private:
  int file_;
  SourceInfo info_;
};

float sum(const std::byte* data, std::int64_t count) {
  const auto* values = reinterpret_cast<const float*>(data);
  std::array<float, 32> lanes{};
  for (std::int64_t i = 0; i + 32 <= count; i += 32) {
    for (std::size_t k = 0; k < 32; ++k) lanes[k] += values[i + static_cast<std::int64_t>(k)];
  }
  float total = 0;
  for (const float lane : lanes) total += lane;
  return total;
}

float sum(const Block& block) {
  const auto& rows = std::get<DenseRows>(block.x);
  return sum(rows.data, rows.rows * rows.columns);
}

template <typename Body>
void on_threads(int threads, Body body) {
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back([&body, i] { body(i); });
}

void plain_loop(benchmark::State& state, const std::string& path) {
  RawFileSource source(path);
  const BlockGrid grid({0, source.info().rows}, kBlockRows);
  const auto threads = static_cast<int>(state.range(0));
  const auto backend = make_host_backend();
  std::vector<void*> buffers;
  for (int i = 0; i < threads; ++i) buffers.push_back(backend->allocate_staging(std::size_t{2} << 20));
  for (auto _ : state) {
    std::atomic<std::int64_t> next{0};
    on_threads(threads, [&](int thread) {
      auto* buffer = static_cast<std::byte*>(buffers[static_cast<std::size_t>(thread)]);
      for (std::int64_t id = next++; id < grid.end_id(); id = next++) {
        source.read(grid.range(id), {buffer, static_cast<std::size_t>(kBlockBytes)});
        benchmark::DoNotOptimize(sum(buffer, kColumns * kBlockRows));
      }
    });
  }
  for (void* buffer : buffers) backend->release_staging(buffer, std::size_t{2} << 20);
  state.SetBytesProcessed(state.iterations() * grid.count() * kBlockBytes);
}

void pipeline(benchmark::State& state, const std::string& path) {
  RawFileSource source(path);
  const BlockGrid grid({0, source.info().rows}, kBlockRows);
  const auto threads = static_cast<int>(state.range(0));
  const auto backend = make_host_backend();
  const PipelineOptions options{.slots = static_cast<int>(state.range(2)),
                                .io_threads = static_cast<int>(state.range(1)),
                                .consumers_read = state.range(3) != 0};
  PipelineStats stats;
  for (auto _ : state) {
    BlockPipeline blocks({&source, nullptr, nullptr}, grid, contiguous_shard(grid, 0, 1), *backend, options);
    on_threads(threads, [&](int) {
      const Queue queue = backend->make_queue();
      while (auto lease = blocks.next(queue)) benchmark::DoNotOptimize(sum(lease->block()));
    });
    stats = blocks.stats();
  }
  state.SetBytesProcessed(state.iterations() * grid.count() * kBlockBytes);
  state.counters["wait_s"] = stats.wait_seconds;
  state.counters["read_s"] = stats.read_seconds;
}

/// A temporary file, gone from its folder before the program ends.
std::string write_temporary() {
  std::string path = (std::filesystem::temp_directory_path() / "pipeline_bench_XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) throw system_error(ExitCode::failed, path, errno);
  std::vector<float> block(static_cast<std::size_t>(kColumns * kBlockRows), 0.5f);
  for (int i = 0; i < 1024; ++i) {
    if (write(file, block.data(), kBlockBytes) != kBlockBytes) throw system_error(ExitCode::failed, path, errno);
  }
  close(file);
  return path;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const bool temporary = argc < 2;
  const std::string path = temporary ? write_temporary() : argv[1];
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark("PlainLoop", [&](auto& state) { plain_loop(state, path); })
        ->ArgName("threads")
        ->Arg(threads)
        ->UseRealTime();
    for (const bool consumers_read : {true, false}) {
      benchmark::RegisterBenchmark("Pipeline", [&](auto& state) { pipeline(state, path); })
          ->ArgNames({"consumers", "readers", "slots", "consumers_read"})
          ->Args({threads, 2, 6, consumers_read})
          ->UseRealTime();
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  if (temporary) std::filesystem::remove(path);
}
