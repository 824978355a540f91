#include "io/contiguous_source.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/scratch.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kScratchBytes = 1 << 20;
/// A run at least this long is read straight to its place.
constexpr std::int64_t kDirectBytes = 4096;
/// Reading this many bytes that nobody wants costs less than another call.
constexpr std::int64_t kGapBytes = 8192;

}  // namespace

ReadFile reopen(const InputPlan& plan) {
  ReadFile file(plan.path, plan.name());
  ReadFile::check_unchanged(plan.path, plan.name(), plan.file_bytes, plan.modified_ns);
  return file;
}

ContiguousSource::ContiguousSource(const InputPlan& plan)
    : DenseSource(info_of(plan)),
      file_(reopen(plan)),
      offset_(plan.offset),
      layout_(plan.shape, plan.row_axis, plan.fortran, static_cast<std::int64_t>(size_of(plan.type))) {}

void ContiguousSource::read_bytes(std::int64_t offset, std::byte* to, std::int64_t bytes, std::int64_t row) {
  file_.read(offset, {to, static_cast<std::size_t>(bytes)}, row);
  count_bytes(bytes);
}

std::int64_t ContiguousSource::place(std::int64_t outer, std::int64_t row) const {
  return offset_ + (outer * layout_.rows() + row) * layout_.inner() * element_bytes();
}

void ContiguousSource::fill(RowRange rows, std::byte* to) {
  if (layout_.rows_in_order()) {
    read_bytes(place(0, rows.first), to, rows.count * row_bytes(), rows.first);
  } else if (layout_.inner_in_order() && layout_.inner() * element_bytes() >= kDirectBytes) {
    fill_runs(rows, to);
  } else {
    fill_by_scratch(rows, to);
  }
}

void ContiguousSource::fill_runs(RowRange rows, std::byte* to) {
  for (std::int64_t outer = 0; outer < layout_.outer(); ++outer) {
    std::byte* column = to + layout_.column_of(outer) * element_bytes();
    for (std::int64_t row = 0; row < rows.count; ++row) {
      read_bytes(place(outer, rows.first + row), column + row * row_bytes(), layout_.inner() * element_bytes(),
                 rows.first + row);
    }
  }
}

/// Several stretches at a time go through scratch memory; of each only the rows wanted are read, unless what lies
/// between is little.
void ContiguousSource::fill_by_scratch(RowRange rows, std::byte* to) {
  const std::int64_t run = layout_.inner() * element_bytes(), stretch = run * layout_.rows();
  const std::int64_t rows_at_once = std::clamp<std::int64_t>(kScratchBytes / run, 1, rows.count);
  for (std::int64_t done = 0; done < rows.count; done += rows_at_once) {
    const RowRange part{rows.first + done, std::min(rows_at_once, rows.count - done)};
    const std::int64_t wanted = part.count * run;
    const bool read_through = stretch - wanted <= kGapBytes;
    const std::int64_t step = read_through ? stretch : wanted;
    const std::int64_t at_once = std::clamp<std::int64_t>(kScratchBytes / step, 1, layout_.outer());
    const Scratch scratch(scratch_, static_cast<std::size_t>(std::max(at_once * step, kScratchBytes)));
    for (std::int64_t outer = 0; outer < layout_.outer(); outer += at_once) {
      const std::int64_t outers = std::min(at_once, layout_.outer() - outer);
      if (read_through) {
        // from the first row wanted of the first stretch to the last one of the last
        read_bytes(place(outer, part.first), scratch.data(), (outers - 1) * stretch + wanted, part.first);
      } else {
        for (std::int64_t o = 0; o < outers; ++o) {
          read_bytes(place(outer + o, part.first), scratch.data() + o * step, wanted, part.first);
        }
      }
      layout_.scatter(scratch.data(), step, outer, outers, part.count, to + done * row_bytes());
    }
  }
}

}  // namespace rowmill
