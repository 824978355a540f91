#include "io/convention_source.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <variant>

#include "io/stored_values.hpp"

namespace rowmill {

namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// The number in type T, or nothing if an integer type does not hold it. Floating types take the nearest.
template <typename T>
std::optional<T> number_as(const Number& number) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number.value());
  } else {
    if (number.kind == Number::Kind::signed_integer && std::in_range<T>(number.as_signed())) {
      return static_cast<T>(number.as_signed());
    }
    if (number.kind == Number::Kind::unsigned_integer && std::in_range<T>(number.bits)) {
      return static_cast<T>(number.bits);
    }
    if (number.kind != Number::Kind::floating) return {};
    const double x = number.as_floating();
    // both bounds are exact: powers of two
    if (!(x >= static_cast<double>(std::numeric_limits<T>::min())) ||
        !(x < std::ldexp(1.0, std::numeric_limits<T>::digits)) || x != std::trunc(x)) {
      return {};
    }
    return static_cast<T>(x);
  }
}

/// A limit in type T, moved inwards to a value that T has; nothing where it bounds nothing. `none`: no value passes.
template <typename T>
std::optional<T> limit_as(const std::optional<Number>& limit, bool least, bool& none) {
  if (!limit || std::isnan(limit->value())) return {};
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(limit->value());
  } else {
    Number whole = *limit;
    if (whole.kind == Number::Kind::floating) {
      whole = Number::of(least ? std::ceil(whole.as_floating()) : std::floor(whole.as_floating()));
    }
    if (const std::optional<T> held = number_as<T>(whole)) return held;
    const bool negative = whole.value() < 0;
    if (negative != least) none = true;
    return {};
  }
}

/// The rules in the type of the values.
template <typename T>
struct Rules {
  explicit Rules(const Conventions& conventions) {
    for (const Number& number : conventions.missing) {
      if (const std::optional<T> value = number_as<T>(number)) missing.push_back(*value);
    }
    bool none = false;
    const std::optional<T> lower = limit_as<T>(conventions.least, true, none);
    const std::optional<T> upper = limit_as<T>(conventions.most, false, none);
    if (lower) least = *lower;
    if (upper) most = *upper;
    if (none) least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::lowest();
  }
  bool is_missing(T value) const {
    if (value < least || value > most) return true;
    for (const T fill : missing) {
      if (value == fill) return true;
    }
    return false;
  }
  std::vector<T> missing;
  T least =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  T most = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
};

/// Halves with missing values become fp64 as well: they are rare, and this needs no rounding to halves.
bool converts(ElementType type, const Conventions& conventions) {
  return conventions.scaled() || (conventions.any() && (type.dtype == DType::f16 || type.dtype == DType::bf16));
}

class ConventionSource : public Source {
 public:
  ConventionSource(std::unique_ptr<Source> source, const Conventions& conventions)
      : source_(std::move(source)),
        conventions_(conventions),
        stored_(source_->info().type),
        info_(source_->info()),
        scale_(conventions.scale.value_or(1)),
        offset_(conventions.offset.value_or(0)) {
    converts_ = converts(stored_, conventions);
    masks_ = delivers_mask(stored_, conventions);
    info_.type = delivered_type(stored_, conventions);
  }

  const SourceInfo& info() const override { return info_; }

  void prepare(const ReadingPlan& plan) override {
    source_->prepare(plan);
    info_.reader_bytes = source_->info().reader_bytes;
    info_.shared_bytes = source_->info().shared_bytes;
    info_.warnings = source_->info().warnings;
  }

  std::size_t bytes_for(RowRange rows) const override {
    const auto elements = static_cast<std::size_t>(rows.count * info_.columns);
    const std::size_t values = elements * size_of(info_.type);
    if (converts_) return std::max(values, source_->bytes_for(rows));
    return masks_ ? padded(values) + padded(elements) : values;
  }

  SourceRows read(RowRange rows, std::span<std::byte> to) override {
    if (to.size() < bytes_for(rows)) throw std::length_error("a buffer too small for " + info_.name());
    SourceRows result = with_stored(stored_, [&](auto element) { return read_as<decltype(element)>(rows, to); });
    const std::scoped_lock lock(counted_mutex_);
    const std::int64_t now = source_->bytes_read();
    count_bytes(now - counted_);
    counted_ = now;
    return result;
  }

 private:
  template <typename Element>
  SourceRows read_as(RowRange rows, std::span<std::byte> to) {
    const Rules<typename Element::Value> rules(conventions_);
    const std::int64_t columns = info_.columns;
    SourceRows result{DenseRows{to.data(), info_.type, rows.count, columns, columns}, {}};
    const std::int64_t elements = rows.count * columns;
    source_->read(rows, to.first(source_->bytes_for(rows)));
    if (converts_) {
      widen<Element>(rules, to.data(), elements);
      return result;
    }
    if constexpr (std::is_integral_v<typename Element::Value>) {
      auto* mask =
          reinterpret_cast<std::uint8_t*>(to.data()) + padded(static_cast<std::size_t>(elements) * Element::bytes);
      if (mark<Element>(rules, to.data(), elements, mask))
        result.missing = MaskView{mask, rows.count, columns, columns};
    } else if constexpr (std::is_floating_point_v<typename Element::Value> && Element::bytes >= 4) {
      for (std::int64_t i = 0; i < elements; ++i) {
        std::byte* at = to.data() + i * static_cast<std::int64_t>(Element::bytes);
        if (rules.is_missing(Element::load(at)))
          Element::store(std::numeric_limits<typename Element::Value>::quiet_NaN(), at);
      }
    }
    return result;
  }

  /// False if none is missing.
  template <typename Element, typename T>
  static bool mark(const Rules<T>& rules, const std::byte* from, std::int64_t elements, std::uint8_t* mask) {
    std::uint8_t any = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      const bool missing = rules.is_missing(Element::load(from + i * static_cast<std::int64_t>(Element::bytes)));
      mask[i] = missing ? 1 : 0;
      any = static_cast<std::uint8_t>(any | mask[i]);
    }
    return any != 0;
  }

  /// In place, from the last value on: none is overwritten before it is read. So the source is asked for all rows in
  /// one go, and decodes what they share once.
  template <typename Element, typename T>
  void widen(const Rules<T>& rules, std::byte* rows, std::int64_t elements) const {
    for (std::int64_t i = elements; i-- > 0;) {
      const T value = Element::load(rows + i * static_cast<std::int64_t>(Element::bytes));
      const double wide = rules.is_missing(value) ? std::numeric_limits<double>::quiet_NaN()
                                                  : static_cast<double>(value) * scale_ + offset_;
      std::memcpy(rows + i * static_cast<std::int64_t>(sizeof wide), &wide, sizeof wide);
    }
  }

  std::unique_ptr<Source> source_;
  Conventions conventions_;
  ElementType stored_;
  SourceInfo info_;
  double scale_, offset_;
  bool converts_ = false, masks_ = false;
  std::mutex counted_mutex_;
  std::int64_t counted_ = 0;
};

}  // namespace

ElementType delivered_type(ElementType type, const Conventions& conventions) {
  return converts(type, conventions) ? ElementType{DType::f64, false} : type;
}

bool delivers_mask(ElementType type, const Conventions& conventions) {
  return conventions.any() && !converts(type, conventions) && is_integer(type.dtype);
}

std::unique_ptr<Source> with_conventions(std::unique_ptr<Source> source, const Conventions& conventions) {
  if (!conventions.any()) return source;
  return std::make_unique<ConventionSource>(std::move(source), conventions);
}

}  // namespace rowmill
