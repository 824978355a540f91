// Jobs on a device against the same jobs on the host.
#include <cmath>
#include <random>

#include "core/error.hpp"
#include "core/log.hpp"
#include "engine/lanes.hpp"
#include "engine/run.hpp"
#include "tests/gpu/test_device.hpp"
#include "tests/support/files.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill {
namespace {

constexpr std::int64_t rows = 20'011, columns = 37, block_rows = 1500;

class DeviceEngine : public test::OnTestDevice {
 protected:
  void SetUp() override {
    OnTestDevice::SetUp();
    start_log("warn", 0, 1);
    std::mt19937_64 random(seed_);
    std::normal_distribution<float> normal(3, 2);
    for (float& value : x_.values) value = normal(random);
  }

  std::unique_ptr<Source> source() const { return test::MemorySource::dense<float>(rows, columns, x_.values); }

  JobOptions options() const {
    JobOptions options;
    options.block_rows = block_rows;
    return options;
  }

  /// Every pass of a job through one lane: pipeline, operations, partial. Copies stand between device and host memory.
  ResultSink mill(Backend& backend, Ops& ops, const std::string& name, Source& source,
                  const JobOptions& options) const {
    const auto job = make_job(name, {rows, columns, source.info().type}, options);
    Lanes lanes(Lanes::extended(job->layout(ops)), backend, ops,
                {.count = 1, .refuse_missing = options.missing == Missing::error, .input = "x", .columns = {}});
    ops.prepare({source.info().type, block_rows, columns, options.precision}, lanes.first_queue());
    const BlockGrid grid({0, rows}, block_rows);
    State state;
    ResultSink sink;
    for (bool first = true;; first = false) {
      BlockPipeline pipeline({&source, nullptr, nullptr}, grid, contiguous_shard(grid, 0, 1), backend, {});
      std::optional<Lease> lease;
      if (first) {
        lease = pipeline.next(lanes.first_queue());
        lanes.pilot(*job, lease->block(), state);
      }
      job->begin_pass(state);
      lanes.mill(*job, pipeline, std::move(lease), [] {});
      lanes.merge();
      HostPartial partial = lanes.fetch();
      if (job->finish(partial, state, sink) == Next::done) return sink;
    }
  }

  ResultSink mill_on_host(const std::string& name, Source& source, const JobOptions& options) const {
    const auto backend = make_host_backend();
    const auto ops = make_host_ops(*backend);
    return mill(*backend, *ops, name, source, options);
  }

  const std::uint64_t seed_ = std::random_device{}();
  test::Matrix<float> x_{rows, columns};
};

/// Every number of one result is near the other's; both are fp64 throughout.
void expect_near(const ResultSink& a, const ResultSink& b, std::uint64_t seed) {
  ASSERT_GT(a.datasets().size(), 0u);
  ASSERT_EQ(a.datasets().size(), b.datasets().size());
  for (const ResultDataset& dataset : a.datasets()) {
    const ResultDataset* const other = b.find(dataset.name);
    ASSERT_NE(other, nullptr) << dataset.name;
    ASSERT_EQ(dataset.values.size(), other->values.size());
    double greatest = 0;
    for (const double value : dataset.values) greatest = std::max(greatest, std::abs(value));
    for (std::size_t i = 0; i < dataset.values.size(); ++i)
      ASSERT_NEAR(dataset.values[i], other->values[i], 1e-12 * greatest) << dataset.name << " seed " << seed;
  }
}

void expect_same_bits(const ResultSink& a, const ResultSink& b) {
  ASSERT_EQ(a.datasets().size(), b.datasets().size());
  for (const ResultDataset& dataset : a.datasets()) {
    const auto& other = b.find(dataset.name)->values;
    ASSERT_EQ(std::memcmp(dataset.values.data(), other.data(), other.size() * sizeof(double)), 0) << dataset.name;
  }
}

TEST_F(DeviceEngine, EveryJob_GivesTheHostsNumbers_AndTheSameBitsEveryTime) {
  for (const char* name : {"stats", "gram", "cov"}) {
    const auto input = source();
    const ResultSink result = mill(backend(), ops(), name, *input, options());
    expect_near(result, mill_on_host(name, *input, options()), seed_);
    for (int again = 0; again < 3; ++again) expect_same_bits(mill(backend(), ops(), name, *input, options()), result);
  }
}

TEST_F(DeviceEngine, Stats_OfMissingValues_CountsAndSkipsThem) {
  for (std::size_t i = 0; i < x_.values.size(); i += 101) x_.values[i] = std::nanf("");
  const auto input = source();
  JobOptions skip = options();
  skip.missing = Missing::skip;
  const ResultSink result = mill(backend(), ops(), "stats", *input, skip);
  const ResultSink expected = mill_on_host("stats", *input, skip);
  EXPECT_EQ(result.find("missing")->values, expected.find("missing")->values);
  EXPECT_GT(result.find("missing")->values[0], 0);
  expect_near(result, expected, seed_);
}

TEST_F(DeviceEngine, AMissingValue_IsNamed_WhereItIsRefused) {
  x_.at(17'003, 5) = std::nanf("");
  x_.at(19'000, 1) = std::nanf("");
  for (const char* name : {"stats", "gram"}) {
    const auto input = source();
    try {
      mill(backend(), ops(), name, *input, options());
      FAIL() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.row(), 17'003);
      EXPECT_NE(std::string(error.what()).find("row 17003, column 5"), std::string::npos) << error.what();
    }
  }
}

std::string backend_of(const ResultSink& result) {
  for (const auto& [name, value] : result.attributes()) {
    if (name == "backend") return std::get<std::string>(value);
  }
  return "?";
}

/// The program's own way: planned, several lanes, from a file.
TEST_F(DeviceEngine, AWholeRun_NamesItsBackend_AndGivesTheSameBitsWithAnyNumberOfThreads) {
  const test::Folder folder;
  const std::string path = folder / "x.npy";
  test::write_npy(path, x_);
  for (const char* name : {"stats", "cov"}) {
    std::optional<RunReport> first;
    for (const int threads : {1, 2, 3}) {
      RunOptions chosen;
      chosen.job = name;
      chosen.inputs = {path};
      chosen.backend = device_->backend_name;
      chosen.progress = "none";
      chosen.threads = threads;
      chosen.block_rows = block_rows;
      World world = World::single();
      RunReport report = run(chosen, world);
      ASSERT_EQ(report.exit_code, ExitCode::ok) << report.error;
      EXPECT_EQ(backend_of(report.result), device_->backend_name);
      if (first) {
        expect_same_bits(report.result, first->result);
      } else {
        first = std::move(report);
      }
    }
  }
}

}  // namespace
}  // namespace rowmill
