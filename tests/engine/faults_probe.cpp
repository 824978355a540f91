// A program whose rank STUCK mills on a device that stops working, while rank FAILING fails; run under mpirun by
// faults_stuck_test. FAILING -1: nobody fails.
//   engine_faults_probe WHERE STUCK FAILING TIMEOUT_MS
// WHERE: milling; combining, before a sum by NCCL without a time limit; summing, before a sum by MPI; or the name of a
// file, which the engine mills whole, a double of CUDA being the device.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "comm/device_patience.hpp"
#include "comm/nccl_reduce.hpp"
#include "comm/world.hpp"
#include "engine/run.hpp"
#include "tests/comm/nccl_double.hpp"
#include "tests/engine/small_run.hpp"
#include "tests/support/fake_cuda.hpp"
#include "tests/support/faulty_backend.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill {
namespace {

constexpr std::int64_t rows = 20000, columns = 5;

/// Holds up the queue before the sums.
void stop_device(test::FaultyBackend& backend, Queue queue) {
  backend.submit(queue, [] {
    for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
}

void mill_with_faults(World& world, const std::string& where, bool stuck, bool failing,
                      std::chrono::milliseconds patience_timeout) {
  Communicator& ranks = world.communicator();
  const bool milling = where == "milling";
  test::FaultyBackend backend(make_async_host_backend(), {.stuck_event = stuck && milling ? 25 : 0});
  testing::NcclDouble nccl(ranks, backend, {});
  const auto over_nccl =
      make_nccl_communicator(ranks, backend, {nccl.calls(), {}}, {.timeout = std::chrono::milliseconds(0)});
  const auto source = test::MemorySource::dense<float>(rows, columns, std::vector<float>(rows * columns, 1.0F));
  const auto began = std::chrono::steady_clock::now();
  const auto fail_in_time = [&] {
    // later than the other's device stops, sooner than the blocks end
    if (failing && std::chrono::steady_clock::now() - began > std::chrono::milliseconds(1500)) {
      throw Error(ExitCode::input, "the file is gone");
    }
  };
  if (milling) {
    if (failing) source->set_delay(std::chrono::milliseconds(200));
    const auto watch = [&] {
      fail_in_time();
      check_patience(ranks, "the double of a device", backend.longest_wait(), patience_timeout);
    };
    test::mill({.backend = backend, .ranks = ranks, .bulk = *over_nccl, .source = *source, .watch = watch});
    return;
  }
  const Queue queue = backend.make_queue();
  const DeviceBuffer memory(backend, sizeof(std::int64_t), queue);
  if (stuck) stop_device(backend, queue);
  while (failing) {
    ranks.poll({Heartbeat::Stage::combining});
    fail_in_time();
  }
  Communicator& bulk = where == "summing" ? ranks : *over_nccl;
  bulk.reduce(backend, memory.data(), 1, ElementKind::i64, Combine::max, queue);
}

/// Says how that went as run() tells it.
int run_all(World& world, const std::string& file, bool stuck, std::chrono::milliseconds timeout) {
  for (int i = 0; i < world.size(); ++i) {
    test::FakeCuda::get().devices.push_back(test::fake_device(i, static_cast<std::uint8_t>(i + 1)));
  }
  static CudaModule module = test::fake_module();
  if (stuck) {
    module.make_backend = [](int, std::int64_t) -> std::unique_ptr<Backend> {
      return std::make_unique<test::FaultyBackend>(make_async_host_backend(), test::BackendFaults{.stuck_event = 25});
    };
  }
  RunOptions options;
  options.job = "stats";
  options.inputs = {file};
  options.backend = "cuda";
  options.comm = "mpi";
  options.block_rows = 100;
  options.threads = 2;
  options.memory = std::int64_t{1} << 30;
  options.timeout = timeout;
  options.progress = "none";
  options.quiet = true;
  const RunReport report = run(options, world, [] { return CudaProbe{&module, {}}; });
  if (!report.error.empty()) std::fprintf(stderr, "rowmill[%d]: error: %s\n", world.rank(), report.error.c_str());
  return static_cast<int>(report.exit_code);
}

int probe(int argc, char** argv) {
  const std::chrono::milliseconds timeout(std::atoi(argv[4]));
  World world(argc, argv, timeout);
  const int stuck = std::atoi(argv[2]), failing = std::atoi(argv[3]);
  // who waits for its device is to hear of a failure first
  const std::chrono::milliseconds patience_timeout = failing < 0 ? timeout : std::chrono::milliseconds(0);
  const std::string where = argv[1];
  if (where[0] == '/') return run_all(world, where, world.rank() == stuck, timeout);
  return test::end_together(
      world, [&] { mill_with_faults(world, where, world.rank() == stuck, world.rank() == failing, patience_timeout); });
}

}  // namespace
}  // namespace rowmill

int main(int argc, char** argv) {
  return rowmill::test::probe_main(argc, argv, 4, rowmill::probe);
}
