#include "io/column_join_source.hpp"

#include <algorithm>
#include <mutex>

#include "core/error.hpp"
#include "core/pool.hpp"
#include "io/scratch.hpp"
#include "io/stored_values.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kSliceBytes = 1 << 20;

class ColumnJoinSource : public DenseSource {
 public:
  ColumnJoinSource(const InputPlan& plan, std::vector<std::unique_ptr<Source>> sources)
      : DenseSource(info_of(plan)), sources_(std::move(sources)) {
    count_memory();
    for (const auto& source : sources_) {
      if (source->info().read_elsewhere) is_read_elsewhere();
    }
    for (const InputPlan& part : plan.parts) places_.push_back(part.places);
  }

  void prepare(const ReadingPlan& plan) override {
    ReadingPlan of_each = plan;
    of_each.memory_bytes /= static_cast<std::int64_t>(sources_.size());
    for (const auto& source : sources_) {
      const std::size_t said = source->info().warnings.size();
      source->prepare(of_each);
      const std::vector<std::string>& warnings = source->info().warnings;
      for (std::size_t i = said; i < warnings.size(); ++i) warn(warnings[i]);
    }
    block_rows_ = plan.grid.block_rows();
    count_memory();
  }

 protected:
  void fill(RowRange rows, std::byte* to) override {
    // slices small enough for the cache, but all in one go where storage chunks are decoded
    const std::int64_t slice_rows = decodes_ ? rows.count : std::max<std::int64_t>(1, kSliceBytes / row_bytes());
    for (RowRange slice = rows; slice.first < rows.end(); slice.first = slice.end()) {
      slice.count = std::min(slice_rows, rows.end() - slice.first);
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        place(i, slice, reinterpret_cast<double*>(to) + (slice.first - rows.first) * info().columns);
      }
    }
    const std::scoped_lock lock(counted_mutex_);
    std::int64_t now = 0;
    for (const auto& source : sources_) now += source->bytes_read();
    count_bytes(now - counted_);
    counted_ = now;
  }

 private:
  void count_memory() {
    std::int64_t reader_bytes = 0, shared_bytes = 0, most_of_block = 0;
    const RowRange block{0, std::min(block_rows_, info().rows)};
    for (const auto& source : sources_) {
      reader_bytes += source->info().reader_bytes;
      shared_bytes += source->info().shared_bytes;
      most_of_block = std::max(most_of_block, static_cast<std::int64_t>(source->bytes_for(block)));
    }
    decodes_ = reader_bytes > 0;
    needs_memory_a_reader(decodes_ ? reader_bytes + most_of_block : 0);
    needs_shared_memory(shared_bytes);
  }

  void place(std::size_t i, RowRange rows, double* to) {
    const Scratch scratch(scratch_, std::max<std::size_t>(64, sources_[i]->bytes_for(rows)));
    sources_[i]->read(rows, {scratch.data(), scratch.size()});
    const std::int64_t columns = info().columns;
    with_stored(sources_[i]->info().type, [&](auto element) {
      using Element = decltype(element);
      const std::byte* from = scratch.data();
      for (std::int64_t row = 0; row < rows.count; ++row) {
        for (const std::int64_t column : places_[i]) {
          to[row * columns + column] = static_cast<double>(Element::load(from));
          from += Element::bytes;
        }
      }
    });
  }

  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::vector<std::int64_t>> places_;
  bool decodes_ = false;
  std::int64_t block_rows_ = 1;
  std::mutex counted_mutex_;
  std::int64_t counted_ = 0;
  MemoryPool scratch_;
};

}  // namespace

void check_columns_plan(const InputPlan& plan) {
  std::vector<bool> filled(static_cast<std::size_t>(plan.columns()), false);
  std::size_t count = 0;
  for (const InputPlan& part : plan.parts) {
    if (part.rows() != plan.rows()) {
      throw Error(ExitCode::input, part.name() + ": has " + std::to_string(part.rows()) + " rows, the frame has " +
                                       std::to_string(plan.rows()) + ": it is damaged");
    }
    const bool fits = static_cast<std::int64_t>(part.places.size()) == part.columns();
    for (const std::int64_t place : part.places) {
      if (!fits || place < 0 || place >= plan.columns() || filled[static_cast<std::size_t>(place)]) {
        throw Error(ExitCode::input, part.name() + ": its columns are not those that its frame names: it is damaged");
      }
      filled[static_cast<std::size_t>(place)] = true;
      ++count;
    }
  }
  if (count != filled.size()) throw Error(ExitCode::input, plan.name() + ": some of its columns are missing");
}

std::unique_ptr<Source> join_columns(const InputPlan& plan, std::vector<std::unique_ptr<Source>> sources) {
  return std::make_unique<ColumnJoinSource>(plan, std::move(sources));
}

}  // namespace rowmill
