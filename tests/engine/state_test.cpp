#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "jobs/job.hpp"

namespace rowmill {
namespace {

State some_state() {
  State state;
  state.pass = 3;
  state.arrays["shift"] = {1.5, -0.0, std::numeric_limits<double>::infinity(), 5e-324};
  state.arrays["empty"] = {};
  state.arrays["a name with spaces"] = std::vector<double>(1000, 0.1);
  return state;
}

TEST(State, ThatWasSerialised_ComesBackBitForBit) {
  const State before = some_state();
  const State after = State::deserialise(before.serialise());
  EXPECT_EQ(after.pass, 3);
  EXPECT_EQ(after.arrays, before.arrays);
  EXPECT_TRUE(std::signbit(after.arrays.at("shift")[1]));
}

TEST(State, ThatWasCutShort_IsRefused) {
  const std::vector<std::byte> whole = some_state().serialise();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 7) {
    EXPECT_THROW(State::deserialise(std::span(whole).first(bytes)), Error) << bytes;
  }
}

TEST(State, OfOtherBytes_IsRefused) {
  std::vector<std::byte> bytes = some_state().serialise();
  bytes[0] ^= std::byte{1};
  EXPECT_THROW(State::deserialise(bytes), Error);
}

TEST(State, ThatClaimsMoreThanThereIs_IsRefusedBeforeItIsAllocated) {
  std::vector<std::byte> bytes = some_state().serialise();
  for (std::size_t k = 0; k < 8; ++k) bytes[24 + 8 + k] = std::byte{0x7f};  // the length of the first array
  EXPECT_THROW(State::deserialise(bytes), Error);
}

TEST(Jobs, AllNames_AreMadeAndUnknownOnesRefused) {
  for (const std::string& name : job_names()) EXPECT_NE(make_job(name, {10, 2, {DType::f32, false}}, {}), nullptr);
  EXPECT_THROW(make_job("cow", {10, 2, {DType::f32, false}}, {}), Error);
  EXPECT_THROW(block_preference("cow"), Error);
}

}  // namespace
}  // namespace rowmill
