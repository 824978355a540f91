// A program with scripted misbehaviour, run under mpirun by comm_fault_test.
//   comm_probe SCENARIO RANK TIMEOUT_MS
// All ranks mill block 17 for a while; then RANK does what the scenario says and the others go into a reduction.
#include <mpi.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "comm/mpi_communicator.hpp"
#include "comm/world.hpp"
#include "tests/comm/deferring_backend.hpp"
#include "tests/comm/probe.hpp"

namespace rowmill {
namespace {

using std::chrono::milliseconds;

bool stop_in_allreduce = false;

void mill(Communicator& comm, milliseconds duration) {
  const auto until = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < until) {
    comm.poll({Heartbeat::Stage::milling, 17});
    std::this_thread::sleep_for(milliseconds(1));
  }
}

void combine(Communicator& comm, bool on_device = false) {
  testing::DeferringBackend backend(!on_device);
  const Queue queue = backend.make_queue();
  std::vector<std::int64_t> ones((1 << 20) + 3, 1);
  comm.reduce(backend, ones.data(), static_cast<std::int64_t>(ones.size()), ElementKind::i64, Combine::sum, queue);
  for (const std::int64_t one : ones) {
    if (one != comm.size()) throw std::logic_error("wrong sum");
  }
}

void misbehave(const std::string& scenario, Communicator& comm, milliseconds timeout) {
  if (scenario == "kill") ::raise(SIGKILL);
  if (scenario == "stop") ::raise(SIGSTOP);
  if (scenario == "hang") {
    for (;;) std::this_thread::sleep_for(milliseconds(100));
  }
  if (scenario == "slow") mill(comm, 2 * timeout);
  if (scenario == "throw") throw std::runtime_error("not agreed on");
  if (scenario == "others-linger") throw Error(ExitCode::input, "the file is gone");
  if (scenario == "fail") throw Error(ExitCode::input, "block 17 cannot be read", 1700);
}

/// Over an MPI that takes device memory. RANK stops when all have come to the sum.
void combine_on_device(bool stops, milliseconds timeout) {
  const auto over = make_mpi_communicator(timeout, true).communicator;
  stop_in_allreduce = stops;
  combine(*over, true);
}

int run(int argc, char** argv) {
  const std::string scenario = argv[1];
  const int rank = std::atoi(argv[2]);
  const milliseconds timeout(std::atoi(argv[3]));
  const char* launched_as = std::getenv("OMPI_COMM_WORLD_RANK");
  if (scenario == "stop-at-start" && launched_as != nullptr && std::atoi(launched_as) == rank) ::raise(SIGSTOP);
  World world(argc, argv, timeout, milliseconds(scenario == "stop-at-start" ? 1000 : 30000));
  Communicator& comm = world.communicator();
  return test::end_together(world, [&] {
    mill(comm, milliseconds(600));
    if (world.rank() == rank) misbehave(scenario, comm, timeout);
    if (scenario == "others-linger") mill(comm, 20 * timeout);
    if (scenario == "stop-in-device-sum") combine_on_device(world.rank() == rank, timeout);
    combine(comm);
  });
}

}  // namespace
}  // namespace rowmill

/// In the place of MPI's own.
int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (rowmill::stop_in_allreduce) ::raise(SIGSTOP);
  return PMPI_Allreduce(from, to, count, type, op, comm);
}

int main(int argc, char** argv) {
  return rowmill::test::probe_main(argc, argv, 3, rowmill::run);
}
