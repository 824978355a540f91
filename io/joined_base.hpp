#pragma once
// What joined sources share, dense or sparse: which rows lie in which part, and what parts take together.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "io/input_plan.hpp"
#include "io/joined_source.hpp"
#include "io/open_parts.hpp"

namespace rowmill {

class JoinedSource : public Source {
 public:
  JoinedSource(InputPlan plan, OpenPart open);
  const SourceInfo& info() const override { return info_; }
  void prepare(const ReadingPlan& plan) override;
  void check_unchanged() const override;

 protected:
  const InputPlan& part_plan(std::size_t i) const { return plan_.parts[i]; }
  OpenParts& parts() const { return parts_; }

  /// Of parts with sparse rows: what they hold together. Opens each of them once.
  void count_entries_of_parts();

  /// Memory of a reader beside that of the parts.
  virtual std::int64_t own_reader_bytes(RowRange block) const = 0;

  /// Calls body(part, its own rows, rows asked for before these) for each part of which rows are asked for.
  template <typename Body>
  void for_parts(RowRange rows, const Body& body) const {
    for (std::size_t i = part_of(rows.first); i < info_.files.size() && info_.files[i].first_row < rows.end(); ++i) {
      const SourceFile& file = info_.files[i];
      const std::int64_t first = std::max(rows.first, file.first_row);
      const std::int64_t end = std::min(rows.end(), file.first_row + file.rows);
      if (first < end) body(i, RowRange{first - file.first_row, end - first}, first - rows.first);
    }
  }

  /// The part in which all of the rows lie.
  std::optional<std::size_t> only_part(RowRange rows) const;
  RowRange within(std::size_t i, RowRange rows) const { return {rows.first - info_.files[i].first_row, rows.count}; }

  /// Throws std::out_of_range, std::length_error.
  void check(RowRange rows, std::span<std::byte> to) const;

 private:
  std::size_t part_of(std::int64_t row) const;
  std::unique_ptr<Source> open_part(std::size_t i, const OpenPart& open) const;
  std::int64_t most_parts_in(std::int64_t rows) const;
  std::vector<std::size_t> one_of_each_kind() const;

  const InputPlan plan_;
  SourceInfo info_;
  mutable OpenParts parts_;
  std::optional<ReadingPlan> reading_;
  RowRange read_from_;
};

}  // namespace rowmill
