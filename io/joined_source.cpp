#include "io/joined_source.hpp"

#include <algorithm>
#include <cstring>

#include "core/pool.hpp"
#include "io/convention_source.hpp"
#include "io/joined_base.hpp"
#include "io/joined_plan.hpp"
#include "io/scratch.hpp"
#include "io/sparse_rows.hpp"
#include "io/widen.hpp"

namespace rowmill {

namespace {

constexpr std::int64_t kSliceBytes = 1 << 20;

std::size_t padded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

class JoinedDense : public JoinedSource {
 public:
  JoinedDense(InputPlan plan, OpenPart open) : JoinedSource(std::move(plan), std::move(open)) {
    for (std::size_t i = 0; i < info().files.size(); ++i) masks_ = masks_ || masks(i);
  }

  std::size_t bytes_for(RowRange rows) const override {
    const auto elements = static_cast<std::size_t>(rows.count * info().columns);
    return padded(elements * width()) + (masks_ ? padded(elements) : 0);
  }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    check(rows, to);
    const auto only = only_part(rows);
    if (rows.count > 0 && only && !converts(*only))
      return (*OpenParts::InUse(parts(), *only)).read(within(*only, rows), to);
    const std::int64_t columns = info().columns;
    Place place{to.data(), nullptr, false};
    if (masks_) {
      place.mask = to.data() + padded(static_cast<std::size_t>(rows.count * columns) * width());
      std::memset(place.mask, 0, static_cast<std::size_t>(rows.count * columns));
    }
    for_parts(rows, [&](std::size_t i, RowRange own, std::int64_t before) { read_part(i, own, before, place); });
    SourceRows result{DenseRows{to.data(), info().type, rows.count, columns, columns}, {}};
    if (place.any_missing) {
      result.missing = MaskView{reinterpret_cast<const std::uint8_t*>(place.mask), rows.count, columns, columns};
    }
    return result;
  }

 protected:
  std::int64_t own_reader_bytes(RowRange block) const override {
    const std::int64_t rows = std::min(block.count, info().storage_chunk_rows);
    return std::max(kSliceBytes, static_cast<std::int64_t>(bytes_for({0, rows})));
  }

 private:
  struct Place {
    std::byte *values, *mask;
    bool any_missing;
  };

  std::size_t width() const { return size_of(info().type); }
  bool converts(std::size_t i) const { return delivered_type(part_plan(i)) != info().type; }
  bool masks(std::size_t i) const { return delivers_mask(part_plan(i).type, part_plan(i).conventions); }

  void read_part(std::size_t i, RowRange own, std::int64_t before, Place& place) {
    const OpenParts::InUse part(parts(), i);
    std::byte* values = place.values + static_cast<std::size_t>(before * info().columns) * width();
    const std::size_t bytes = part->bytes_for(own);
    const bool aligned = reinterpret_cast<std::uintptr_t>(values) % 64 == 0;
    if (aligned && !converts(i) && bytes == static_cast<std::size_t>(own.count * info().columns) * width()) {
      part->read(own, {values, bytes});
      return;
    }
    // slices small enough for the cache, but of whole storage chunks
    const auto row_bytes = static_cast<std::int64_t>(std::max<std::size_t>(1, part->bytes_for({0, 1})));
    const std::int64_t chunk = std::max<std::int64_t>(1, part->info().storage_chunk_rows);
    const std::int64_t slice_rows = chunk * std::max<std::int64_t>(1, kSliceBytes / row_bytes / chunk);
    for (std::int64_t first = own.first; first < own.end();) {
      const std::int64_t end = std::min(own.end(), (first / slice_rows + 1) * slice_rows);
      const Scratch scratch(scratch_, padded(part->bytes_for({first, end - first})));
      const SourceRows got = part->read({first, end - first}, {scratch.data(), scratch.size()});
      put(got, before + first - own.first, place);
      first = end;
    }
  }

  void put(const SourceRows& got, std::int64_t before, Place& place) const {
    const auto& dense = std::get<DenseRows>(got.rows);
    const std::int64_t elements = dense.rows * dense.columns, at = before * dense.columns;
    convert_elements(dense.data, dense.type, elements, place.values + at * static_cast<std::int64_t>(width()),
                     info().type);
    if (!got.missing) return;
    std::memcpy(place.mask + at, got.missing->data, static_cast<std::size_t>(elements));
    place.any_missing = true;
  }

  bool masks_ = false;
  MemoryPool scratch_;
};

class JoinedSparse : public JoinedSource {
 public:
  JoinedSparse(InputPlan plan, OpenPart open) : JoinedSource(std::move(plan), std::move(open)) {
    count_entries_of_parts();
  }

  std::size_t bytes_for(RowRange rows) const override {
    if (rows.count == 0) return SparseLayout(0, 0, info().type).bytes();
    if (const auto only = only_part(rows)) return (*OpenParts::InUse(parts(), *only)).bytes_for(within(*only, rows));
    return layout(rows).bytes();
  }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    check(rows, to);
    if (rows.count > 0) {
      if (const auto only = only_part(rows)) return (*OpenParts::InUse(parts(), *only)).read(within(*only, rows), to);
    }
    const SparseLayout places = rows.count > 0 ? layout(rows) : SparseLayout(0, 0, info().type);
    std::int64_t* start = places.row_start(to);
    std::int64_t* index = places.index(to);
    std::byte* value = places.value(to);
    start[0] = 0;
    for_parts(rows, [&](std::size_t i, RowRange own, std::int64_t before) {
      const OpenParts::InUse part(parts(), i);
      const Scratch scratch(scratch_, padded(part->bytes_for(own)));
      const SourceRows got = part->read(own, {scratch.data(), scratch.size()});
      const auto& csr = std::get<CsrRows>(got.rows);
      const std::int64_t done = start[before], entries = csr.row_start[own.count];
      for (std::int64_t row = 1; row <= own.count; ++row) start[before + row] = done + csr.row_start[row];
      std::copy_n(csr.index, entries, index + done);
      std::memcpy(value + done * width(), csr.value, static_cast<std::size_t>(entries * width()));
    });
    return {CsrRows{start, index, value, info().type, rows.count, info().columns}, {}};
  }

 protected:
  std::int64_t own_reader_bytes(RowRange block) const override { return static_cast<std::int64_t>(bytes_for(block)); }

 private:
  std::int64_t width() const { return static_cast<std::int64_t>(size_of(info().type)); }

  /// Room for the entries that the parts may have at most.
  SparseLayout layout(RowRange rows) const {
    std::int64_t entries = 0;
    for_parts(rows, [&](std::size_t i, RowRange own, std::int64_t) {
      const auto bytes = static_cast<std::int64_t>((*OpenParts::InUse(parts(), i)).bytes_for(own));
      constexpr std::int64_t number_bytes = sizeof(std::int64_t);
      entries += (bytes - number_bytes * (own.count + 1)) / (number_bytes + width());
    });
    return {rows.count, entries, info().type};
  }

  MemoryPool scratch_;
};

}  // namespace

std::unique_ptr<Source> join_rows(InputPlan plan, OpenPart open) {
  if (is_sparse(plan.parts[0])) return std::make_unique<JoinedSparse>(std::move(plan), std::move(open));
  return std::make_unique<JoinedDense>(std::move(plan), std::move(open));
}

}  // namespace rowmill
