#pragma once
// Ranks agree on what to do next before they do what none of them can leave again.
#include <functional>
#include <memory>
#include <optional>

namespace rowmill {

/// Ranks of MPI_COMM_WORLD. Throws std::logic_error if MPI was not started.
int mpi_world_size();

/// Votes of all ranks, one after another: the greatest counts. Called from one thread.
class Ballot {
 public:
  /// Collective over MPI_COMM_WORLD. `while_waiting` is called in the wait and may throw.
  explicit Ballot(const std::function<void()>& while_waiting);
  Ballot(const Ballot&) = delete;
  Ballot& operator=(const Ballot&) = delete;
  /// A vote may still be under way: what MPI uses of it stays until the process ends.
  ~Ballot();

  /// True from vote() until result() says something.
  bool under_way() const;
  /// Does not wait. Not while one is under way.
  void vote(int value);
  /// The greatest of all ranks' votes, once all have voted.
  std::optional<int> result();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowmill
