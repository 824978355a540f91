#include "comm/world.hpp"

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <exception>

#include "comm/call_watch.hpp"
#include "comm/control_plane.hpp"
#include "comm/cuda_aware.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/mpi_error.hpp"
#include "core/error.hpp"

namespace rowmill {
namespace {

/// srun starts several programs that know nothing of each other if it was not told to speak PMIx: each would do the
/// whole work and write the same output.
void refuse_strangers() {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks != nullptr && std::atoi(tasks) > 1) {
    throw Error(ExitCode::device, std::string("srun started ") + tasks +
                                      " tasks that MPI does not join; start them with srun --mpi=pmix or mpirun");
  }
}

bool mpi_is_up() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  return initialized != 0;
}

void start_mpi(int& argc, char**& argv, bool for_files) {
  // Ranks that wait leave their core to those that work; on oversubscribed cores MPI is ten times faster so.
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  // OMPIO of 4.1 gives wrong bytes where ranks read the same ones together (docs/decisions.md)
  if (for_files) ::setenv("OMPI_MCA_io_ompio_priority", "1", 0);
  // where /sys is not mounted hwloc complains on stderr, once a rank
  ::setenv("HWLOC_HIDE_ERRORS", "2", 0);
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED) {
    throw Error(ExitCode::device, "this MPI cannot be used by a program with threads; build it with thread support");
  }
}

struct Places {
  int local_rank = 0, local_size = 1, nodes = 1;
};

Places find_places() {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  Places places;
  MPI_Comm_rank(node, &places.local_rank);
  MPI_Comm_size(node, &places.local_size);
  MPI_Comm_free(&node);
  const int first_here = places.local_rank == 0 ? 1 : 0;
  check_mpi(MPI_Allreduce(&first_here, &places.nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
  return places;
}

}  // namespace

bool launched_by_mpi() {
  constexpr std::array names{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  for (const char* name : names) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

World::World(int& argc, char**& argv, std::chrono::milliseconds timeout, std::chrono::milliseconds start_allowance,
             bool for_files) {
  const bool up = mpi_is_up();
  if (!up && !launched_by_mpi()) {
    refuse_strangers();
    if (!for_files) {
      communicator_ = make_self_communicator();
      return;
    }
  }
  const CallWatch watch(timeout.count() == 0 ? timeout : timeout + start_allowance, "not all ranks have started",
                        "one is stopped or its node cannot be reached; give a longer --timeout where starting takes "
                        "longer");
  if (!up) {
    start_mpi(argc, argv, for_files);
    started_mpi_ = true;
  }
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) {
    communicator_ = make_self_communicator();
    return;
  }
  const Places places = find_places();
  local_rank_ = places.local_rank;
  local_size_ = places.local_size;
  nodes_ = places.nodes;
  MpiParts parts = make_mpi_communicator(timeout, mpi_is_cuda_aware());
  communicator_ = std::move(parts.communicator);
  control_ = parts.control;
}

World::~World() {
  // An error on its way through here may be unknown to the other ranks: they learn that this one is gone.
  if (std::uncaught_exceptions() > 0) communicator_->announce({ExitCode::failed, std::nullopt, {}});
  communicator_.reset();
  if (started_mpi_) MPI_Finalize();
}

void World::set_timeout(std::chrono::milliseconds timeout) {
  if (control_ != nullptr) control_->set_timeout(timeout);
}

}  // namespace rowmill
