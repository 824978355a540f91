// Exits with 77, which ctest shows as skipped, if every test that was asked for was skipped.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool only_skipped = all.skipped_test_count() > 0 && all.skipped_test_count() == all.test_to_run_count();
  return result == 0 && only_skipped ? 77 : result;
}
