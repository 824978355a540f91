// The main of tests that run on several ranks. Rank 0 prints; failures of all ranks are gathered after each test and
// make it fail on every rank. A rank that does not come to the end of a test within the patience ends the whole run.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/skips.hpp"

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::seconds patience() {
  const char* text = std::getenv("ROWMILL_TEST_PATIENCE");
  return std::chrono::seconds(text != nullptr ? std::atoi(text) : 30);
}

std::string failures_of(const testing::TestInfo& test) {
  std::string text;
  const testing::TestResult& result = *test.result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (!part.failed()) continue;
    text += std::string(part.file_name() != nullptr ? part.file_name() : "unknown file") + ":" +
            std::to_string(part.line_number()) + ": " + part.message() + "\n";
  }
  return text;
}

/// Runs at the end of each test, before the printer of rank 0.
class FailureGatherer : public testing::EmptyTestEventListener {
 public:
  FailureGatherer() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    const std::string mine = failures_of(test);
    meet(name, mine);
    const std::vector<std::string> all = exchange(mine);
    for (int from = 0; from < size_; ++from) {
      const std::string& theirs = all[static_cast<std::size_t>(from)];
      if (from != rank_ && !theirs.empty()) ADD_FAILURE() << "on rank " << from << ":\n" << theirs;
    }
  }

 private:
  /// Waits for all ranks; a test that hangs on some of them ends here with what the others have to say.
  void meet(const std::string& name, const std::string& mine) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm_, &request);
    const auto deadline = Clock::now() + patience();
    for (int come = 0;;) {
      MPI_Test(&request, &come, MPI_STATUS_IGNORE);
      if (come != 0) return;
      if (Clock::now() > deadline) {
        std::fprintf(stderr, "rank %d waits in vain for other ranks at the end of %s\n%s", rank_, name.c_str(),
                     mine.c_str());
        std::fflush(stderr);
        // Others that wait have something to say too.
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        MPI_Abort(comm_, 1);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  std::vector<std::string> exchange(const std::string& mine) {
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(static_cast<std::size_t>(size_)), offsets(static_cast<std::size_t>(size_));
    MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_);
    int total = 0;
    for (std::size_t from = 0; from < lengths.size(); ++from) {
      offsets[from] = total;
      total += lengths[from];
    }
    std::string text(static_cast<std::size_t>(total), ' ');
    MPI_Allgatherv(mine.data(), length, MPI_CHAR, text.data(), lengths.data(), offsets.data(), MPI_CHAR, comm_);
    std::vector<std::string> all;
    for (std::size_t from = 0; from < lengths.size(); ++from) {
      all.push_back(text.substr(static_cast<std::size_t>(offsets[from]), static_cast<std::size_t>(lengths[from])));
    }
    return all;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) delete listeners.Release(listeners.default_result_printer());
  if (rank == 0) listeners.Append(new rowmill::test::SkipReporter);
  listeners.Append(new FailureGatherer);  // listeners appended last hear of a test's end first
  int failed = RUN_ALL_TESTS();
  // Failures outside of tests (in the set-up of a suite) are known to their own rank only.
  int failed_anywhere = 0;
  MPI_Allreduce(&failed, &failed_anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (failed_anywhere != 0 && failed == 0 && rank == 0) std::fputs("another rank failed outside of a test\n", stderr);
  int code = rowmill::test::exit_code(failed_anywhere == 0 ? 0 : 1);
  MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);  // launchers take the code of any rank
  MPI_Finalize();
  return code;
}
