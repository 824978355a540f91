// From a job's row output to a file: job, lanes, writer, on several ranks with unequal numbers of blocks.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>

#include "comm/world.hpp"
#include "core/error.hpp"
#include "engine/lanes.hpp"
#include "io/row_writer.hpp"
#include "tests/support/files.hpp"
#include "tests/support/memory_source.hpp"

namespace rowmill {
namespace {

constexpr std::int64_t rows = 1003, columns = 5, block_rows = 50;

/// Gives the sum and the greatest value of each row.
class RowSums final : public Job {
 public:
  PartialLayout layout(const Ops&) const override {
    PartialLayout layout;
    layout.add("blocks", ElementKind::i64, Combine::sum, 1);
    return layout;
  }
  std::optional<RowOutput> row_output() const override { return RowOutput{"row_sums", 2, false}; }
  void pilot(const Block&, PartialView, State&, Ops&, Queue) override {}
  void begin_pass(const State&) override {}
  void prepare(PartialView, Ops&, Queue) const override {}
  void accumulate(const Block&, PartialView lane, Ops& ops, Queue queue) const override {
    std::int64_t* const blocks = lane.i64("blocks");
    ops.backend().submit(queue, [blocks] { ++*blocks; });
  }
  void write_rows(const Block& block, PartialView, double* to, Ops& ops, Queue queue) const override {
    const DenseRows x = std::get<DenseRows>(block.x);
    ops.backend().submit(queue, [x, to] {
      const auto* values = reinterpret_cast<const float*>(x.data);
      for (std::int64_t i = 0; i < x.rows; ++i) {
        double sum = 0, greatest = -1e300;
        for (std::int64_t j = 0; j < x.columns; ++j) {
          sum += static_cast<double>(values[i * x.stride + j]);
          greatest = std::max(greatest, static_cast<double>(values[i * x.stride + j]));
        }
        to[2 * i] = sum;
        to[2 * i + 1] = greatest;
      }
    });
  }
  Next finish(HostPartial&, State&, ResultSink&) override { return Next::done; }
};

class RowOutputs : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::vector<float> values(rows * columns);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 97);
    values_ = values;
    source_ = test::MemorySource::dense<float>(rows, columns, values);
    backend_ = GetParam() ? make_host_backend() : make_async_host_backend();
    ops_ = make_host_ops(*backend_);
  }

  /// One rank takes a third of the blocks of the others.
  Shard unequal_shard(const BlockGrid& grid) const {
    Shard shard;
    for (std::int64_t id = grid.first_id(); id < grid.end_id(); ++id) {
      const bool first = id % (3 * world_.size()) == 0;
      const int owner = first || world_.size() == 1 ? 0 : 1 + static_cast<int>(id % (world_.size() - 1));
      if (owner == world_.rank()) shard.push_back(id);
    }
    return shard;
  }

  void mill(const Lanes::TakeRows& take_rows) {
    const BlockGrid grid({0, rows}, block_rows);
    const RowSums job;
    Lanes lanes(Lanes::extended(job.layout(*ops_), block_rows * 2), *backend_, *ops_,
                {.count = 2, .input = "x", .columns = {}});
    BlockPipeline pipeline({source_.get(), nullptr, nullptr}, grid, unequal_shard(grid), *backend_, {});
    lanes.mill(
        job, pipeline, std::nullopt, [this] { world_.communicator().poll({Heartbeat::Stage::milling}); }, take_rows);
  }

  int argc_ = 0;
  char** argv_ = nullptr;
  World world_{argc_, argv_, std::chrono::seconds(20)};
  std::vector<float> values_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Ops> ops_;
};

INSTANTIATE_TEST_SUITE_P(Backends, RowOutputs, testing::Bool(),
                         [](const auto& of) { return of.param ? "Inline" : "Async"; });

TEST_P(RowOutputs, OfUnequalShards_FillTheFile) {
  std::vector<std::byte> name;
  std::optional<test::Folder> folder;
  if (world_.rank() == 0) {
    folder.emplace();
    const std::string path = *folder / "rows.h5";
    name.assign(reinterpret_cast<const std::byte*>(path.data()),
                reinterpret_cast<const std::byte*>(path.data()) + path.size());
  }
  world_.communicator().broadcast(name, 0);
  const std::string path(reinterpret_cast<const char*>(name.data()), name.size());
  {
    RowWriter writer(path, RowSums().row_output().value(), rows, {.alone = false});
    mill([&](RowRange range, std::span<const double> values) { writer.write(range, values); });
    writer.finish();
  }
  if (world_.rank() != 0) return;
  const std::vector<double> found = test::read_result(path, "row_sums");
  ASSERT_EQ(found.size(), static_cast<std::size_t>(2 * rows));
  for (std::size_t i = 0; i < rows; ++i) {
    double sum = 0, greatest = -1;
    for (std::size_t j = 0; j < columns; ++j) {
      sum += static_cast<double>(values_[i * columns + j]);
      greatest = std::max(greatest, static_cast<double>(values_[i * columns + j]));
    }
    ASSERT_EQ(found[2 * i], sum) << i;
    ASSERT_EQ(found[2 * i + 1], greatest) << i;
  }
}

TEST_P(RowOutputs, ThatCannotBeTaken_EndTheRun) {
  int taken = 0;
  const auto refuse = [&](RowRange, std::span<const double>) {
    if (++taken == 2) throw Error(ExitCode::failed, "the disk is full");
  };
  const BlockGrid grid({0, rows}, block_rows);
  if (unequal_shard(grid).size() < 2) return;
  EXPECT_THROW(mill(refuse), Error);
  EXPECT_EQ(taken, 2);
}

}  // namespace
}  // namespace rowmill
