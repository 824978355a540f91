#pragma once
// What all sources of one dense data set share.
#include "io/source.hpp"

namespace rowmill {

/// Rows are delivered without gaps, in the stored type.
class DenseSource : public Source {
 public:
  explicit DenseSource(SourceInfo info);
  const SourceInfo& info() const override { return info_; }
  std::size_t bytes_for(RowRange rows) const override { return static_cast<std::size_t>(rows.count * row_bytes_); }
  SourceRows read(RowRange rows, std::span<std::byte> to) override;

 protected:
  /// Sets SourceInfo::reader_bytes.
  void needs_memory_a_reader(std::int64_t bytes) { info_.reader_bytes = bytes; }
  /// Sets SourceInfo::read_elsewhere.
  void is_read_elsewhere() { info_.read_elsewhere = true; }
  /// Sets SourceInfo::shared_bytes.
  void needs_shared_memory(std::int64_t bytes) { info_.shared_bytes = bytes; }
  /// Sets SourceInfo::layout_cost.
  void set_layout_cost(std::string text) { info_.layout_cost = std::move(text); }
  void warn(std::string text) { info_.warnings.push_back(std::move(text)); }
  std::int64_t row_bytes() const { return row_bytes_; }
  std::int64_t element_bytes() const { return static_cast<std::int64_t>(size_of(info_.type)); }

  /// Fills `to` with rows, at least one, that lie within the source. Called from several threads at once.
  virtual void fill(RowRange rows, std::byte* to) = 0;

 private:
  SourceInfo info_;
  std::int64_t row_bytes_;
};

}  // namespace rowmill
