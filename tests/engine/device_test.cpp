// Choosing a device on several ranks, over a CUDA module that is none.
#include "engine/device.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/log.hpp"
#include "engine/run.hpp"
#include "tests/support/fake_cuda.hpp"
#include "tests/support/files.hpp"

namespace rowmill {
namespace {

using test::fake_device;
using test::FakeCuda;
using test::probe_fake;

class ChooseDevice : public testing::Test {
 protected:
  void SetUp() override {
    start_log("off", world_.rank(), world_.size());
    fake_.reset();
  }

  /// A GPU for each rank.
  void give_each_rank_a_gpu() {
    for (int i = 0; i < world_.size(); ++i) fake_.devices.push_back(fake_device(i, static_cast<std::uint8_t>(i + 1)));
  }

  Device choose(const std::string& backend, const std::string& comm = "auto", std::int64_t memory = 0) {
    return choose_device({backend, comm, memory, std::chrono::seconds(20)}, world_, probe_fake);
  }

  /// cov of a file that rank 0 writes into its folder.
  RunOptions options_for(const test::Folder& folder) {
    std::string path = folder / "x.npy";
    if (world_.rank() == 0) {
      test::Matrix<float> x(5000, 13);
      for (std::size_t k = 0; k < x.values.size(); ++k) x.values[k] = std::sin(static_cast<float>(k));
      test::write_npy(path, x, false, {});
    }
    std::vector<std::byte> name;
    for (const char c : path) name.push_back(static_cast<std::byte>(c));
    ranks_.broadcast(name, 0);
    path.assign(reinterpret_cast<const char*>(name.data()), name.size());

    RunOptions options;
    options.job = "cov";
    options.inputs = {path};
    options.progress = "none";
    options.block_rows = 400;
    options.threads = 2;
    options.memory = std::int64_t{4} << 30;
    return options;
  }

  /// What this rank says, or nothing if another's failure came first. Every rank must come to the same end, whoever
  /// fails: the agreement shows it.
  std::string error_of(const std::string& backend, const std::string& comm = "auto") {
    std::string message;
    std::optional<Failure> mine;
    try {
      choose(backend, comm);
    } catch (const PeerFailed&) {
    } catch (const Error& error) {
      mine = Failure{error.code(), std::nullopt, error.what()};
      message = error.what();
      ranks_.announce(*mine);
    }
    const Agreement agreement = ranks_.agree(mine, {});
    EXPECT_FALSE(agreement.ok);
    EXPECT_EQ(agreement.code, ExitCode::device);
    return message;
  }

  /// Rank 0, which decides, says so; others too, unless they hear of it first.
  void expect_error(const std::string& message, const std::string& mentions) {
    if (world_.rank() != 0 && message.empty()) return;
    EXPECT_NE(message.find(mentions), std::string::npos) << message;
  }

  int argc_ = 0;
  char** argv_ = nullptr;
  World world_{argc_, argv_, std::chrono::seconds(20)};
  Communicator& ranks_ = world_.communicator();
  FakeCuda& fake_ = FakeCuda::get();
};

TEST_F(ChooseDevice, WithAGpuForEachRank_TakesItsOwnAndNcclAmongSeveral) {
  give_each_rank_a_gpu();
  const Device device = choose("auto");
  EXPECT_EQ(fake_.ordinal, world_.local_rank());
  EXPECT_EQ(fake_.memory_limit, 0) << "nine tenths of what is free";
  EXPECT_EQ(device.nccl != nullptr, world_.size() > 1);
  EXPECT_EQ(device.comm(world_), world_.alone() ? "self" : "nccl");
  EXPECT_EQ(&device.bulk(ranks_) == &ranks_, world_.alone());
  EXPECT_EQ(device.why_host + device.warning, "");
}

TEST_F(ChooseDevice, WithOneVisibleGpu_SharesItOverMpiWithAWarning) {
  fake_.devices = {fake_device(0, 7)};
  const Device device = choose("auto");
  EXPECT_EQ(fake_.ordinal, 0);
  EXPECT_EQ(device.nccl, nullptr);
  EXPECT_EQ(device.warning.empty(), world_.alone());
  EXPECT_EQ(fake_.memory_limit, world_.alone() ? 0 : 800 / world_.size());
  EXPECT_EQ(device.comm(world_), world_.alone() ? "self" : "mpi");
}

TEST_F(ChooseDevice, WithDeviceMemory_PassesItOn) {
  fake_.devices = {fake_device(0, 7)};
  const Device device = choose("cuda", "mpi", 123456);
  EXPECT_EQ(fake_.memory_limit, 123456);
}

TEST_F(ChooseDevice, WithNcclForced_TakesItForOneRankToo) {
  give_each_rank_a_gpu();
  const Device device = choose("auto", "nccl");
  ASSERT_NE(device.nccl, nullptr);
  EXPECT_EQ(device.nccl->size(), world_.size());
}

TEST_F(ChooseDevice, WithNcclForcedOnOneGpu_FailsOnEveryRank) {
  if (world_.alone()) GTEST_SKIP() << "one rank shares its GPU with nobody";
  fake_.devices = {fake_device(0, 7)};
  expect_error(error_of("cuda", "nccl"), "share one GPU");
  EXPECT_EQ(fake_.backends, 0);
}

TEST_F(ChooseDevice, WhereNcclCannotBeUsed_GoesOnOverMpiUnlessItWasAskedFor) {
  give_each_rank_a_gpu();
  fake_.nccl_fails = true;
  const Device device = choose("auto");
  EXPECT_EQ(device.nccl, nullptr);
  EXPECT_EQ(device.warning.find("libnccl.so.2 is not here") == std::string::npos, world_.alone()) << device.warning;
  const std::string message = error_of("auto", "nccl");
  expect_error(message, "libnccl.so.2 is not here");
}

TEST_F(ChooseDevice, WhereTheLastRankHasNoGpu_IsTheHostEverywhere) {
  if (world_.rank() + 1 == world_.size()) {
    fake_.devices_fail = "no GPU is visible here";
  } else {
    give_each_rank_a_gpu();
  }
  const Device device = choose("auto");
  EXPECT_EQ(device.backend->name(), "host");
  EXPECT_EQ(fake_.backends, 0);
  EXPECT_NE(device.why_host.find("no GPU is visible here"), std::string::npos) << device.why_host;
}

TEST_F(ChooseDevice, WithCudaAskedForWhereTheLastRankHasNone_FailsOnEveryRank) {
  if (world_.rank() + 1 != world_.size()) give_each_rank_a_gpu();
  expect_error(error_of("cuda"), "--backend cuda cannot be had");
  EXPECT_EQ(fake_.backends, 0);
}

TEST_F(ChooseDevice, OfAModuleThatCannotBeOpened_SaysWhy) {
  const auto probe = [] { return CudaProbe{nullptr, "no NVIDIA driver"}; };
  const Device device = choose_device({.backend = "auto"}, world_, probe);
  EXPECT_EQ(device.why_host, "no NVIDIA driver");
  EXPECT_EQ(device.backend->name(), "host");
}

TEST_F(ChooseDevice, OfTheHost_DoesNotEvenLook) {
  give_each_rank_a_gpu();
  const Device device = choose("host");
  EXPECT_EQ(fake_.probes, 0);
  EXPECT_EQ(device.backend->name(), "host");
  EXPECT_EQ(device.why_host, "");
}

TEST_F(ChooseDevice, WhereOneRanksGpuCannotBeUsed_EndsAllRanks) {
  give_each_rank_a_gpu();
  fake_.backend_fails = world_.rank() + 1 == world_.size();
  const std::string message = error_of("auto");
  if (fake_.backend_fails) {
    EXPECT_NE(message.find("busy"), std::string::npos) << message;
  } else {
    EXPECT_EQ(message, "");
  }
}

/// The whole engine with what it takes for a GPU: the same numbers as the host, sums by way of the module's
/// communicator.
TEST_F(ChooseDevice, ThenMilled_GivesTheHostsBits) {
  const test::Folder folder;
  RunOptions options = options_for(folder);
  give_each_rank_a_gpu();
  const RunReport on_device = run(options, world_, probe_fake);
  options.backend = "host";
  const RunReport on_host = run(options, world_, probe_fake);
  ASSERT_EQ(on_device.exit_code, ExitCode::ok) << on_device.error;
  ASSERT_EQ(on_host.exit_code, ExitCode::ok) << on_host.error;
  EXPECT_EQ(fake_.backends, 1);
  EXPECT_EQ(fake_.reductions > 0, world_.size() > 1);
  if (world_.rank() != 0) return;
  EXPECT_EQ(on_device.result.find("covariance")->values, on_host.result.find("covariance")->values);
  EXPECT_EQ(on_device.comm, world_.alone() ? "self" : "nccl");
  EXPECT_GT(on_device.staging.high_water, 0);
  EXPECT_GT(on_device.device.high_water, 0);
  EXPECT_LE(on_device.device.current, on_device.device.high_water);
  EXPECT_TRUE(on_device.memory.apart);
  EXPECT_FALSE(on_host.memory.apart);
}

TEST_F(ChooseDevice, ThenAskedToStopByOneRank_EndsAllRanksWithOneMessageAndNoResult) {
  const test::Folder folder;
  RunOptions options = options_for(folder);
  options.backend = "host";
  if (world_.rank() + 1 == world_.size()) ranks_.request_stop();
  const RunReport report = run(options, world_, probe_fake);
  EXPECT_EQ(report.exit_code, ExitCode::failed);
  EXPECT_TRUE(report.result.datasets().empty());
  std::vector<std::byte> mine;
  for (const char c : report.error) mine.push_back(static_cast<std::byte>(c));
  std::vector<std::string> said;
  for (const auto& bytes : ranks_.gather(mine)) {
    if (!bytes.empty()) said.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (world_.rank() == 0) {
    EXPECT_EQ(said, std::vector<std::string>{"stopped on request"});
  }
  // the wish is forgotten with the run
  EXPECT_EQ(run(options, world_, probe_fake).exit_code, ExitCode::ok);
}

}  // namespace
}  // namespace rowmill
