// A program that sums over a double of NCCL with scripted misbehaviour, run under mpirun by nccl_fault_test.
//   nccl_probe SCENARIO RANK TIMEOUT_MS
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "comm/nccl_reduce.hpp"
#include "comm/world.hpp"
#include "tests/comm/nccl_double.hpp"
#include "tests/comm/probe.hpp"

namespace rowmill {
namespace {

using std::chrono::milliseconds;
using testing::NcclDouble;
using testing::NcclFaults;

/// The first operation is the trial, the second the sum.
NcclFaults faults_of(const std::string& scenario, bool misbehaves) {
  NcclFaults faults;
  if (scenario == "abort-hangs-everywhere") faults.abort_hangs = true;
  if (scenario == "destroy-hangs-everywhere") faults.destroy_hangs = true;
  if (!misbehaves) return faults;
  if (scenario == "late") faults.init_delay = milliseconds(1500);
  if (scenario == "never-joins") faults.init_never = true;
  if (scenario == "never-calls") faults.blocking_operation = 2;
  if (scenario == "error" || scenario.rfind("abort-hangs", 0) == 0) faults.failing_operation = 2;
  if (scenario == "abort-hangs") faults.abort_hangs = true;
  if (scenario == "refused") faults.refused_operation = 2;
  if (scenario == "endless" || scenario == "kill" || scenario == "stop") faults.endless_operation = 2;
  return faults;
}

void sum(Communicator& over_nccl, Backend& backend) {
  const Queue queue = backend.make_queue();
  const DeviceBuffer memory(backend, 1001 * sizeof(std::int64_t), queue);
  auto* const numbers = reinterpret_cast<std::int64_t*>(memory.data());
  backend.submit(queue, [=] { std::fill_n(numbers, 1001, std::int64_t{1}); });
  over_nccl.reduce(backend, numbers, 1001, ElementKind::i64, Combine::sum, queue);
  if (numbers[1000] != over_nccl.size()) throw std::logic_error("wrong sum");
}

/// While the main thread waits in the sum.
std::thread signal_later(const std::string& scenario, bool misbehaves) {
  if (!misbehaves || (scenario != "kill" && scenario != "stop")) return {};
  return std::thread([signal = scenario == "kill" ? SIGKILL : SIGSTOP] {
    std::this_thread::sleep_for(milliseconds(500));
    ::kill(::getpid(), signal);
  });
}

void use_nccl(const std::string& scenario, bool misbehaves, milliseconds timeout, Communicator& ranks) {
  test::FaultyBackend backend(make_async_host_backend(), {});
  NcclDouble nccl(ranks, backend, faults_of(scenario, misbehaves));
  const auto over_nccl = make_nccl_communicator(ranks, backend, {nccl.calls(), {}},
                                                {.timeout = timeout, .abort_grace = milliseconds(1000)});
  std::thread signaller = signal_later(scenario, misbehaves);
  sum(*over_nccl, backend);
  if (signaller.joinable()) signaller.join();
}

int run(int argc, char** argv) {
  const std::string scenario = argv[1];
  const milliseconds timeout(std::atoi(argv[3]));
  World world(argc, argv, timeout);
  return test::end_together(
      world, [&] { use_nccl(scenario, world.rank() == std::atoi(argv[2]), timeout, world.communicator()); });
}

}  // namespace
}  // namespace rowmill

int main(int argc, char** argv) {
  return rowmill::test::probe_main(argc, argv, 3, rowmill::run);
}
