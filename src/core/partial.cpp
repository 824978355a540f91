#include "core/partial.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"

namespace rowmill {

namespace {

constexpr std::size_t alignment = 64;
constexpr char magic[8] = {'R', 'W', 'P', 'A', 'R', 'T', '0', '1'};

std::size_t bytes_of(ElementKind kind, std::int64_t count) {
  switch (kind) {
    case ElementKind::i8:
      return static_cast<std::size_t>(count);
    case ElementKind::i32:
      return static_cast<std::size_t>(count) * 4;
    case ElementKind::i64:
    case ElementKind::f64:
      return static_cast<std::size_t>(count) * 8;
    case ElementKind::binned:
      return binned_bytes(count);
  }
  return 0;
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

bool order_free(ElementKind kind, Combine combine) {
  if (combine == Combine::none) return true;
  if (kind == ElementKind::binned) return combine == Combine::sum;
  if (kind == ElementKind::f64) return combine != Combine::sum;
  return true;
}

template <typename T>
T neutral(Combine combine) {
  using Limits = std::numeric_limits<T>;
  if (combine == Combine::min) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  if (combine == Combine::max) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  return T{};
}

template <typename T>
void fill_neutral(const PartialBlock& block, std::byte* memory) {
  std::fill_n(reinterpret_cast<T*>(memory), block.count, neutral<T>(block.combine));
}

template <typename T>
void merge_plain(const PartialBlock& block, std::byte* to, const std::byte* from) {
  T* const acc = reinterpret_cast<T*>(to);
  const T* const other = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < block.count; ++i) {
    if (block.combine == Combine::min) {
      acc[i] = std::min(acc[i], other[i]);
    } else if (block.combine == Combine::max) {
      acc[i] = std::max(acc[i], other[i]);
    } else {
      acc[i] = static_cast<T>(acc[i] + other[i]);
    }
  }
}

void merge_block(const PartialBlock& block, std::byte* to, std::byte* from) {
  switch (block.kind) {
    case ElementKind::i8:
      return merge_plain<std::int8_t>(block, to, from);
    case ElementKind::i32:
      return merge_plain<std::int32_t>(block, to, from);
    case ElementKind::i64:
      return merge_plain<std::int64_t>(block, to, from);
    case ElementKind::f64:
      return merge_plain<double>(block, to, from);
    case ElementKind::binned:
      return binned_merge(binned_view(to, block.count), binned_view(from, block.count));
  }
}

void append_bytes(std::vector<std::byte>& bytes, const void* from, std::size_t count) {
  const std::size_t end = bytes.size();
  bytes.resize(end + count);
  if (count != 0) std::memcpy(bytes.data() + end, from, count);
}

template <typename T>
void append(std::vector<std::byte>& bytes, const T& value) {
  append_bytes(bytes, &value, sizeof value);
}

/// Notices torn and damaged files, no more: a multiply-and-fold over words (the constant is 2^64 over the golden
/// ratio).
std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t hash = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

/// What stands before the data: which blocks, of what kind and size, in the native byte order.
std::vector<std::byte> header_of(const PartialLayout& layout) {
  std::vector<std::byte> header;
  append(header, magic);
  append(header, static_cast<std::uint64_t>(layout.combined_bytes()));
  for (const PartialBlock& block : layout.blocks()) {
    if (block.combine == Combine::none) continue;
    append(header, static_cast<std::uint64_t>(block.name.size()));
    append_bytes(header, block.name.data(), block.name.size());
    append(header, block.kind);
    append(header, block.combine);
    append(header, block.count);
    append(header, static_cast<std::uint64_t>(block.offset));
  }
  return header;
}

const PartialBlock& block_of_kind(const PartialLayout& layout, const std::string& name, bool wanted(ElementKind)) {
  const PartialBlock& block = layout.block(name);
  if (!wanted(block.kind)) throw std::logic_error("partial block " + name + " is of another kind");
  return block;
}

template <typename T>
void widen(const void* from, std::vector<std::int64_t>& to) {
  std::copy_n(static_cast<const T*>(from), to.size(), to.begin());
}

}  // namespace

PartialLayout& PartialLayout::add(std::string name, ElementKind kind, Combine combine, std::int64_t count) {
  if (!order_free(kind, combine)) throw std::invalid_argument("partial block " + name + " would depend on order");
  if (count < 0) throw std::invalid_argument("partial block " + name + " has a negative count");
  const auto same = [&](const PartialBlock& block) { return block.name == name; };
  if (std::any_of(blocks_.begin(), blocks_.end(), same)) throw std::invalid_argument("two partial blocks " + name);
  std::size_t& end = combine == Combine::none ? scratch_ : combined_;
  const std::size_t bytes = bytes_of(kind, count);
  blocks_.push_back({std::move(name), kind, combine, count, end, bytes});
  end += round_up(bytes);
  return *this;
}

PartialLayout& PartialLayout::add_scratch(std::string name, std::int64_t doubles) {
  return add(std::move(name), ElementKind::f64, Combine::none, doubles);
}

PartialLayout& PartialLayout::add_scratch_bytes(std::string name, std::int64_t bytes) {
  return add(std::move(name), ElementKind::i8, Combine::none, bytes);
}

const PartialBlock& PartialLayout::block(const std::string& name) const {
  for (const PartialBlock& block : blocks_) {
    if (block.name == name) return block;
  }
  throw std::out_of_range("no partial block " + name);
}

void HostPartial::AlignedDelete::operator()(std::byte* memory) const noexcept {
  if (owned) ::operator delete[](memory, std::align_val_t{alignment});
}

HostPartial HostPartial::over(PartialLayout layout, std::byte* memory) {
  return {std::move(layout), std::unique_ptr<std::byte[], AlignedDelete>(memory, AlignedDelete{false})};
}

HostPartial::HostPartial(PartialLayout layout) : layout_(std::move(layout)), memory_(nullptr, AlignedDelete{true}) {
  const std::size_t bytes = std::max(layout_.total_bytes(), alignment);
  memory_.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{alignment})));
  set_neutral(layout_, memory_.get());
}

void HostPartial::merge(HostPartial& other) {
  for (const PartialBlock& block : layout_.blocks()) {
    if (block.combine == Combine::none) continue;
    merge_block(block, memory_.get() + block.offset, other.memory_.get() + block.offset);
  }
}

std::vector<double> HostPartial::sums(const std::string& name) {
  const auto& block = block_of_kind(layout_, name, [](ElementKind kind) { return kind == ElementKind::binned; });
  std::vector<double> values(static_cast<std::size_t>(block.count));
  binned_round(view().binned(name), values);
  return values;
}

std::vector<double> HostPartial::doubles(const std::string& name) {
  const auto& block = block_of_kind(layout_, name, [](ElementKind kind) { return kind == ElementKind::f64; });
  const double* const first = view().f64(name);
  return {first, first + block.count};
}

std::vector<std::int64_t> HostPartial::integers(const std::string& name) {
  const auto& block = block_of_kind(
      layout_, name, [](ElementKind kind) { return kind != ElementKind::binned && kind != ElementKind::f64; });
  std::vector<std::int64_t> values(static_cast<std::size_t>(block.count));
  const void* const raw = view().raw(name);
  if (block.kind == ElementKind::i8) widen<std::int8_t>(raw, values);
  if (block.kind == ElementKind::i32) widen<std::int32_t>(raw, values);
  if (block.kind == ElementKind::i64) widen<std::int64_t>(raw, values);
  return values;
}

std::vector<std::byte> HostPartial::serialise() const {
  std::vector<std::byte> bytes = header_of(layout_);
  bytes.reserve(bytes.size() + layout_.combined_bytes() + sizeof(std::uint64_t));
  append_bytes(bytes, memory_.get(), layout_.combined_bytes());
  append(bytes, checksum(bytes));
  return bytes;
}

void HostPartial::deserialise(std::span<const std::byte> bytes) {
  const std::vector<std::byte> header = header_of(layout_);
  const std::size_t data_end = header.size() + layout_.combined_bytes();
  if (bytes.size() < header.size() || !std::equal(header.begin(), header.end(), bytes.begin())) {
    throw Error(ExitCode::input, "saved partial sums are of another job or version: start without them");
  }
  std::uint64_t saved = 0;
  if (bytes.size() == data_end + sizeof saved) std::memcpy(&saved, bytes.data() + data_end, sizeof saved);
  if (bytes.size() != data_end + sizeof saved || saved != checksum(bytes.first(data_end))) {
    throw Error(ExitCode::input, "saved partial sums are damaged (size or checksum): start without them");
  }
  std::memcpy(memory_.get(), bytes.data() + header.size(), layout_.combined_bytes());
}

void set_neutral(const PartialLayout& layout, std::byte* memory) {
  std::memset(memory, 0, layout.combined_bytes());
  for (const PartialBlock& block : layout.blocks()) {
    if (block.combine != Combine::min && block.combine != Combine::max) continue;
    std::byte* const data = memory + block.offset;
    if (block.kind == ElementKind::i8) fill_neutral<std::int8_t>(block, data);
    if (block.kind == ElementKind::i32) fill_neutral<std::int32_t>(block, data);
    if (block.kind == ElementKind::i64) fill_neutral<std::int64_t>(block, data);
    if (block.kind == ElementKind::f64) fill_neutral<double>(block, data);
  }
}

}  // namespace rowmill
