#pragma once
// What test programs do about tests that are skipped, so that nobody takes them for passed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace rowmill::test {

/// Adds a line "TEST: reason" for each skipped test to the file that ROWMILL_TEST_SKIPS names.
class SkipReporter : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& test) override {
    const char* path = std::getenv("ROWMILL_TEST_SKIPS");
    if (path == nullptr || !test.result()->Skipped()) return;
    std::string line = std::string(test.test_suite_name()) + "." + test.name() + ": ";
    for (int i = 0; i < test.result()->total_part_count(); ++i) {
      if (test.result()->GetTestPartResult(i).skipped()) line += test.result()->GetTestPartResult(i).message();
    }
    for (char& c : line) c = c == '\n' ? ' ' : c;
    std::ofstream(path, std::ios::app) << line << "\n";
  }
};

/// 77, which ctest shows as skipped, if every test that was asked for was skipped.
inline int exit_code(int result) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool only_skipped = all.skipped_test_count() > 0 && all.skipped_test_count() == all.test_to_run_count();
  return result == 0 && only_skipped ? 77 : result;
}

}  // namespace rowmill::test
