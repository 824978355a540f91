// A program whose rank STUCK mills on a device that stops working, while rank FAILING fails; run under mpirun by
// faults_stuck_test. FAILING -1: nobody fails.
//   engine_faults_probe WHERE STUCK FAILING TIMEOUT_MS      WHERE: milling, combining
#include <chrono>
#include <cstdlib>

#include "comm/nccl_reduce.hpp"
#include "comm/world.hpp"
#include "tests/comm/nccl_double.hpp"
#include "tests/engine/small_run.hpp"
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

void mill_with_faults(World& world, const std::string& where, bool stuck, bool failing) {
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
    test::mill({.backend = backend, .ranks = ranks, .bulk = *over_nccl, .source = *source, .watch = fail_in_time});
    return;
  }
  const Queue queue = backend.make_queue();
  const DeviceBuffer memory(backend, sizeof(std::int64_t), queue);
  if (stuck) stop_device(backend, queue);
  while (failing) {
    ranks.poll({Heartbeat::Stage::combining});
    fail_in_time();
  }
  over_nccl->reduce(backend, memory.data(), 1, ElementKind::i64, Combine::max, queue);
}

int run(int argc, char** argv) {
  World world(argc, argv, std::chrono::milliseconds(std::atoi(argv[4])));
  return test::end_together(world, [&] {
    mill_with_faults(world, argv[1], world.rank() == std::atoi(argv[2]), world.rank() == std::atoi(argv[3]));
  });
}

}  // namespace
}  // namespace rowmill

int main(int argc, char** argv) {
  return rowmill::test::probe_main(argc, argv, 4, rowmill::run);
}
