#include "engine/device_choice.hpp"

#include <gtest/gtest.h>

namespace rowmill {
namespace {

DeviceFacts gpu(const std::string& uuid, const std::string& name = "NVIDIA H200") {
  return {{}, name, uuid};
}
DeviceFacts none(const std::string& why = "no NVIDIA driver") {
  return {why, {}, {}};
}
DeviceWish wish(const std::string& backend, const std::string& comm = "auto") {
  return {.backend = backend, .comm = comm};
}

TEST(DeviceChoice, OfOneGpuARank_IsCudaAndNccl) {
  for (const char* backend : {"auto", "cuda"}) {
    const DeviceChoice choice = choose_for_all(wish(backend), {gpu("a"), gpu("b"), gpu("c")});
    EXPECT_TRUE(choice.cuda);
    EXPECT_TRUE(choice.nccl);
    EXPECT_EQ(choice.error + choice.warning + choice.why_host, "");
    EXPECT_EQ(choice.sharing, (std::vector<int>{1, 1, 1}));
  }
}

TEST(DeviceChoice, OfOneRank_TakesNcclOnlyWhereForced) {
  EXPECT_FALSE(choose_for_all(wish("auto"), {gpu("a")}).nccl);
  EXPECT_FALSE(choose_for_all(wish("auto", "mpi"), {gpu("a")}).nccl);
  EXPECT_TRUE(choose_for_all(wish("auto", "nccl"), {gpu("a")}).nccl);
  EXPECT_TRUE(choose_for_all(wish("auto"), {gpu("a")}).cuda);
}

TEST(DeviceChoice, WithCommMpi_KeepsNcclOut) {
  const DeviceChoice choice = choose_for_all(wish("auto", "mpi"), {gpu("a"), gpu("b")});
  EXPECT_TRUE(choice.cuda);
  EXPECT_FALSE(choice.nccl);
  EXPECT_EQ(choice.warning, "");
}

TEST(DeviceChoice, OfTwoRanksOnOneGpu_GoesOverMpiAndNamesTheCure) {
  const DeviceChoice choice = choose_for_all(wish("auto"), {gpu("a"), gpu("b"), gpu("b")});
  EXPECT_TRUE(choice.cuda);
  EXPECT_FALSE(choice.nccl);
  EXPECT_EQ(choice.error, "");
  EXPECT_NE(choice.warning.find("ranks 1 and 2 share one GPU"), std::string::npos) << choice.warning;
  EXPECT_NE(choice.warning.find("one rank a GPU"), std::string::npos) << choice.warning;
  EXPECT_EQ(choice.sharing, (std::vector<int>{1, 2, 2}));
}

TEST(DeviceChoice, OfTwoRanksOnOneGpuWithNcclForced_IsAnError) {
  const DeviceChoice choice = choose_for_all(wish("auto", "nccl"), {gpu("a"), gpu("a")});
  EXPECT_NE(choice.error.find("ranks 0 and 1 share one GPU"), std::string::npos) << choice.error;
  EXPECT_FALSE(choice.nccl);
}

TEST(DeviceChoice, WhereARankHasNoGpu_IsTheHostForAllAndSaysWhichRank) {
  const DeviceChoice choice = choose_for_all(wish("auto"), {gpu("a"), none("no GPU is visible"), gpu("c")});
  EXPECT_FALSE(choice.cuda);
  EXPECT_FALSE(choice.nccl);
  EXPECT_EQ(choice.error, "");
  EXPECT_EQ(choice.why_host, "rank 1: no GPU is visible");
}

TEST(DeviceChoice, WhereNoRankHasAGpu_SaysWhyOnce) {
  EXPECT_EQ(choose_for_all(wish("auto"), {none(), none()}).why_host, "no NVIDIA driver");
  EXPECT_EQ(choose_for_all(wish("auto"), {none("x"), none("y")}).why_host, "rank 0: x");
}

TEST(DeviceChoice, OfCudaThatCannotBeHad_IsAnError) {
  for (const auto& ranks : {std::vector{none()}, std::vector{gpu("a"), none()},
                            std::vector{gpu("a", "NVIDIA H200"), gpu("b", "NVIDIA A100")}}) {
    const DeviceChoice choice = choose_for_all(wish("cuda"), ranks);
    EXPECT_EQ(choice.error.rfind("--backend cuda cannot be had: ", 0), 0U) << choice.error;
    EXPECT_FALSE(choice.cuda);
  }
}

TEST(DeviceChoice, OfNcclWithoutGpus_IsAnError) {
  EXPECT_NE(choose_for_all(wish("auto", "nccl"), {none()}).error.find("--comm nccl"), std::string::npos);
  EXPECT_NE(choose_for_all(wish("host", "nccl"), {none()}).error.find("--comm nccl"), std::string::npos);
  EXPECT_EQ(choose_for_all(wish("auto", "mpi"), {none()}).error, "");
}

TEST(DeviceChoice, OfTwoKindsOfGpu_IsTheHostSinceBitsWouldDiffer) {
  const DeviceChoice choice = choose_for_all(wish("auto"), {gpu("a"), gpu("b"), gpu("c", "NVIDIA A100")});
  EXPECT_FALSE(choice.cuda);
  EXPECT_NE(choice.why_host.find("ranks 0 and 2 have different GPUs (NVIDIA H200, NVIDIA A100)"), std::string::npos)
      << choice.why_host;
}

TEST(DeviceChoice, OfTheHost_AsksNobodyAndExplainsNothing) {
  for (const char* backend : {"host", "host-async"}) {
    EXPECT_FALSE(wants_cuda(wish(backend)));
    const DeviceChoice choice = choose_for_all(wish(backend), {});
    EXPECT_FALSE(choice.cuda);
    EXPECT_EQ(choice.error + choice.why_host + choice.warning, "");
  }
}

TEST(DeviceChoice, SentToOtherRanks_ArrivesWhole) {
  const DeviceFacts facts = DeviceFacts::deserialise(gpu("0f", "NVIDIA \"H200\"").serialise());
  EXPECT_EQ(facts.uuid, "0f");
  EXPECT_EQ(facts.name, "NVIDIA \"H200\"");
  const DeviceChoice sent{true, true, "a", "b", "c", {1, 2}};
  const DeviceChoice got = DeviceChoice::deserialise(sent.serialise());
  EXPECT_TRUE(got.cuda && got.nccl);
  EXPECT_EQ(got.why_host + got.warning + got.error, "abc");
  EXPECT_EQ(got.sharing, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace rowmill
