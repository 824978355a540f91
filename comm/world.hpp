#pragma once
// The lifetime of MPI, and who we are in it. Without mpirun, srun or another launcher MPI is not started at all.
#include <chrono>
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace rowmill {

class World {
 public:
  /// Starts MPI (funneled) if the environment shows a launcher (OMPI_COMM_WORLD_SIZE, PMIX_RANK, PMI_RANK, …), else is
  /// alone. `timeout`: how long a rank may be silent; zero means for ever. Throws Error(device).
  World(int& argc, char**& argv, std::chrono::milliseconds timeout);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  /// Finalises MPI, if all ranks come to it; after a failure that was agreed on this is so.
  ~World();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  int local_rank() const { return local_rank_; }    ///< among the ranks of this node
  int local_size() const { return local_size_; }
  int nodes() const { return nodes_; }
  Communicator& communicator() { return *communicator_; }
  void set_timeout(std::chrono::milliseconds timeout);

 private:
  std::unique_ptr<Communicator> communicator_;
  int local_rank_ = 0, local_size_ = 1, nodes_ = 1;
  bool started_mpi_ = false;
};

/// True if the environment shows that a launcher started this process as one of its ranks.
bool launched_by_mpi();

}  // namespace rowmill
