#pragma once
// A number of a file's attribute, exact whatever its type was there.
#include <bit>
#include <cstdint>

namespace rowmill {

struct Number {
  enum class Kind : std::uint8_t { signed_integer, unsigned_integer, floating };
  Kind kind = Kind::signed_integer;
  std::uint64_t bits = 0;  ///< of an int64_t, uint64_t or double

  static Number of(std::int64_t value) { return {Kind::signed_integer, static_cast<std::uint64_t>(value)}; }
  static Number of(std::uint64_t value) { return {Kind::unsigned_integer, value}; }
  static Number of(double value) { return {Kind::floating, std::bit_cast<std::uint64_t>(value)}; }

  std::int64_t as_signed() const { return static_cast<std::int64_t>(bits); }
  double as_floating() const { return std::bit_cast<double>(bits); }
  /// The nearest double.
  double value() const {
    if (kind == Kind::floating) return as_floating();
    return kind == Kind::signed_integer ? static_cast<double>(as_signed()) : static_cast<double>(bits);
  }
  friend bool operator==(const Number&, const Number&) = default;
};

}  // namespace rowmill
