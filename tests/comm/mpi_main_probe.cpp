// Tests that fail on purpose on one rank; run by mpi_main_test only, never by ctest itself.
#include <gtest/gtest.h>
#include <mpi.h>
#include <signal.h>

#include <stdexcept>

namespace {

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

TEST(Probe, Succeeds) {
  EXPECT_GE(rank(), 0);
}

TEST(Probe, FailsOnRankOne) {
  EXPECT_NE(rank(), 1) << "rank one's own words";
}

TEST(Probe, ThrowsWhileOthersWait) {
  if (rank() == 1) throw std::runtime_error("thrown by rank one");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Probe, DiesWhileOthersWait) {
  if (rank() == 1) ::raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
