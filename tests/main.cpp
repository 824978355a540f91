// The main of tests that run alone.
#include "tests/skips.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new rowmill::test::SkipReporter);
  return rowmill::test::exit_code(RUN_ALL_TESTS());
}
