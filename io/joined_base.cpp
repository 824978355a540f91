#include "io/joined_base.hpp"

#include <set>
#include <stdexcept>

#include "io/read_file.hpp"

namespace rowmill {

namespace {

/// Kept open beside those that are in use: a block's rows may end in a file of which the next block wants the rest.
constexpr std::size_t kIdle = 2;
/// Files of this many kinds are looked at for the memory that reading takes.
constexpr std::size_t kMostKinds = 16;

}  // namespace

JoinedSource::JoinedSource(InputPlan plan, OpenPart open)
    : plan_(std::move(plan)),
      info_(info_of(plan_)),
      parts_([this, open = std::move(open)](std::size_t i) { return open_part(i, open); },
             [this](std::int64_t bytes) { count_bytes(bytes); }, kIdle),
      read_from_{0, info_.rows} {}

void JoinedSource::prepare(const ReadingPlan& plan) {
  parts_.close_idle();
  reading_ = plan;
  read_from_ = plan.rows;
  if (plan.rows.count == 0) return;
  const auto open_at_once =
      std::min<std::int64_t>(plan.readers, most_parts_in(plan.readers * plan.grid.block_rows())) + std::int64_t{kIdle};
  reading_->memory_bytes /= open_at_once;
  std::int64_t reader_bytes = 0, shared_bytes = 0;
  for (const std::size_t i : one_of_each_kind()) {
    const OpenParts::InUse part(parts_, i);
    const SourceInfo& info = part->info();
    // readers that went on to other files leave theirs with a file for a while
    reader_bytes = std::max(reader_bytes, 2 * info.reader_bytes);
    shared_bytes = std::max(shared_bytes, info.shared_bytes * open_at_once);
    info_.read_elsewhere = info_.read_elsewhere || info.read_elsewhere;
    if (info_.layout_cost.empty()) info_.layout_cost = info.layout_cost;
    for (const std::string& warning : info.warnings) {
      const auto& planned = plan_.parts[i].warnings;
      if (std::find(planned.begin(), planned.end(), warning) == planned.end()) info_.warnings.push_back(warning);
    }
  }
  info_.reader_bytes = reader_bytes + own_reader_bytes(plan.grid.range(plan.grid.first_id()));
  info_.shared_bytes = shared_bytes;
}

void JoinedSource::count_entries_of_parts() {
  info_.entries = 0;
  for_parts({0, info_.rows}, [&](std::size_t i, RowRange, std::int64_t) {
    const OpenParts::InUse part(parts_, i);
    info_.entries += part->info().entries;
    info_.entry_pairs += part->info().entry_pairs;
  });
}

void JoinedSource::check_unchanged() const {
  for_parts(read_from_, [&](std::size_t i, RowRange, std::int64_t) {
    const InputPlan& part = plan_.parts[i];
    if (part.modified_ns == 0) return;
    ReadFile::check_unchanged(part.path, part.name(), part.file_bytes, part.modified_ns);
  });
}

std::optional<std::size_t> JoinedSource::only_part(RowRange rows) const {
  const std::size_t i = part_of(rows.first);
  const SourceFile& file = info_.files[i];
  if (rows.first >= file.first_row && rows.end() <= file.first_row + file.rows) return i;
  return {};
}

void JoinedSource::check(RowRange rows, std::span<std::byte> to) const {
  if (rows.first < 0 || rows.count < 0 || rows.first > info_.rows || rows.count > info_.rows - rows.first) {
    throw std::out_of_range("rows outside " + info_.name());
  }
  if (to.size() < bytes_for(rows)) throw std::length_error("a buffer too small for rows of " + info_.name());
}

/// The last part that begins at the row or before; parts without rows come before the one that has it.
std::size_t JoinedSource::part_of(std::int64_t row) const {
  const auto after = std::upper_bound(info_.files.begin(), info_.files.end(), row,
                                      [](std::int64_t wanted, const SourceFile& f) { return wanted < f.first_row; });
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, after - info_.files.begin())) - 1;
}

std::unique_ptr<Source> JoinedSource::open_part(std::size_t i, const OpenPart& open) const {
  std::unique_ptr<Source> source = open(plan_.parts[i]);
  if (!reading_) return source;
  const SourceFile& file = info_.files[i];
  const auto own = [&](RowRange rows) {
    const std::int64_t first = std::clamp<std::int64_t>(rows.first - file.first_row, 0, file.rows);
    return RowRange{first, std::clamp<std::int64_t>(rows.end() - file.first_row, first, file.rows) - first};
  };
  ReadingPlan plan = *reading_;
  plan.grid = BlockGrid(own(reading_->grid.rows()), reading_->grid.block_rows());
  plan.rows = own(reading_->rows);
  plan.rows_before = file.first_row;
  source->prepare(plan);
  return source;
}

/// How many parts a run of so many rows touches at most.
std::int64_t JoinedSource::most_parts_in(std::int64_t rows) const {
  std::size_t most = 1, end = 0;
  for (std::size_t i = 0; i < info_.files.size(); ++i) {
    // the run may begin at the last row of part i
    const std::int64_t reach = info_.files[i].first_row + info_.files[i].rows - 1 + rows;
    while (end < info_.files.size() && info_.files[end].first_row < reach) ++end;
    most = std::max(most, end - i);
  }
  return static_cast<std::int64_t>(most);
}

std::vector<std::size_t> JoinedSource::one_of_each_kind() const {
  std::set<std::string> kinds;
  std::vector<std::size_t> result;
  for_parts(read_from_, [&](std::size_t i, RowRange, std::int64_t) {
    const InputPlan& part = plan_.parts[i];
    if (kinds.size() < kMostKinds && kinds.insert(part.storage + '\n' + part.stored_type).second) result.push_back(i);
  });
  return result;
}

}  // namespace rowmill
