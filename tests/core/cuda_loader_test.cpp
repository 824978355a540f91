// The loader against libraries that only look like a driver and a module: no GPU is needed.
#include "core/cuda_loader.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <vector>

#include "rowmill_version.hpp"
#include "tests/support/scratch.hpp"

namespace rowmill {
namespace {

std::string fake(const std::string& name) {
  return std::string(ROWMILL_FAKES_DIR "/lib").append(name).append(".so");
}

void expect_refused(const CudaPlaces& places, const std::string& mentions) {
  const CudaProbe probe = open_cuda(places);
  EXPECT_EQ(probe.module, nullptr);
  EXPECT_NE(probe.why_not.find(mentions), std::string::npos) << probe.why_not;
  EXPECT_EQ(probe.why_not.find('\n'), std::string::npos) << probe.why_not;
}

TEST(CudaLoader, WithADriverADeviceAndAModuleOfThisVersion_OpensTheModule) {
  const CudaProbe probe =
      open_cuda({fake("fake_driver_good"), {"/nowhere/librowmill_cuda.so", fake("fake_module_good")}});
  ASSERT_NE(probe.module, nullptr) << probe.why_not;
  EXPECT_STREQ(probe.module->version, version);
  EXPECT_TRUE(probe.why_not.empty());
}

TEST(CudaLoader, WithoutADriver_SaysThatItIsNotHere) {
  expect_refused({"libcuda-of-nobody.so.1", {fake("fake_module_good")}}, "no NVIDIA driver");
}

TEST(CudaLoader, WithADriverThatRefuses_SaysWhy) {
  const std::vector<std::string> module = {fake("fake_module_good")};
  expect_refused({fake("fake_driver_stub"), module}, "stub");
  expect_refused({fake("fake_driver_old"), module}, "older than the CUDA");
  expect_refused({fake("fake_driver_no_device"), module}, "no GPU is visible");
  expect_refused({fake("fake_driver_none_counted"), module}, "no GPU is visible");
  expect_refused({fake("fake_driver_broken"), module}, "CUDA error 999");
}

TEST(CudaLoader, WithALibraryThatIsNoDriver_SaysSo) {
  expect_refused({fake("fake_module_good"), {fake("fake_module_good")}}, "is not an NVIDIA driver");
  const test::ScratchFolder folder;
  std::ofstream(folder / "text.so") << "no library";
  expect_refused({folder / "text.so", {fake("fake_module_good")}}, "cannot be opened");
}

TEST(CudaLoader, WithoutAModule_SaysThatItWasBuiltWithoutCuda) {
  expect_refused({fake("fake_driver_good"), {"/nowhere/librowmill_cuda.so"}}, "built without CUDA");
  expect_refused({fake("fake_driver_good"), {}}, "built without CUDA");
}

TEST(CudaLoader, WithAModuleOfAnotherVersion_NamesBoth) {
  expect_refused({fake("fake_driver_good"), {fake("fake_module_other")}}, "0.0.0-other");
  expect_refused({fake("fake_driver_good"), {fake("fake_module_other")}}, version);
}

TEST(CudaLoader, WithWhatIsNoModule_SaysSo) {
  expect_refused({fake("fake_driver_good"), {fake("fake_driver_good")}}, "is not a CUDA module");
  const test::ScratchFolder folder;
  std::ofstream(folder / "text.so") << "no library";
  expect_refused({fake("fake_driver_good"), {folder / "text.so"}}, "librowmill_cuda.so cannot be opened");
}

TEST(CudaLoader, ProbedByManyThreads_GivesOneAnswer) {
  std::vector<CudaProbe> probes(4);
  std::vector<std::thread> threads;
  for (auto& probe : probes) threads.emplace_back([&probe] { probe = probe_cuda(); });
  for (auto& thread : threads) thread.join();
  for (const auto& probe : probes) {
    EXPECT_EQ(probe.module, probes[0].module);
    EXPECT_EQ(probe.why_not, probes[0].why_not);
    EXPECT_EQ(probe.module == nullptr, !probe.why_not.empty());
  }
}

}  // namespace
}  // namespace rowmill
