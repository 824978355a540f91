#pragma once
// The lifetime of MPI, and who we are in it. Without mpirun, srun or another launcher MPI is not started at all.
#include <chrono>
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace rowmill {

class ControlPlane;

class World {
 public:
  /// Starts MPI (funneled) if the environment shows a launcher (OMPI_COMM_WORLD_SIZE, PMIX_RANK, PMI_RANK), else is
  /// alone. If MPI has been started already it is used, and left running in the end. Collective over all ranks.
  /// `timeout`: how long a rank may be silent; zero means for ever. Throws Error(device). If not all
  /// ranks come up in that time, the process ends with that code and one line: MPI's start cannot be interrupted.
  /// `start_allowance`: starting many ranks on busy nodes takes its time, on top of which a rank may be silent.
  /// `for_files`: files are to be read by MPI-IO. MPI is then started without a launcher too, and Open MPI prefers
  /// ROMIO to its own OMPIO, unless the environment has a wish of its own.
  World(int& argc, char**& argv, std::chrono::milliseconds timeout,
        std::chrono::milliseconds start_allowance = std::chrono::seconds(30), bool for_files = false);
  /// One rank, whatever the environment says; MPI is left alone.
  static World single() { return World(make_self_communicator()); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  /// Waits until all ranks end their World, then finalises MPI. Transfers that were abandoned after a failure do no
  /// harm. If a rank comes here while others still work (an error that was not agreed on), they are told that it
  /// failed. What is to be printed should be printed before: launchers end all ranks when the first exits with an
  /// error.
  ~World();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  int local_rank() const { return local_rank_; }  ///< among the ranks of this node
  int local_size() const { return local_size_; }
  int nodes() const { return nodes_; }
  Communicator& communicator() { return *communicator_; }
  bool alone() const { return size() == 1; }
  void set_timeout(std::chrono::milliseconds timeout);

 private:
  explicit World(std::unique_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}

  std::unique_ptr<Communicator> communicator_;
  int local_rank_ = 0, local_size_ = 1, nodes_ = 1;
  ControlPlane* control_ = nullptr;  // owned by communicator_; null where there is one rank
  bool started_mpi_ = false;
};

/// True if the environment shows that a launcher started this process as one of its ranks.
bool launched_by_mpi();

}  // namespace rowmill
