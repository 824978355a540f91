#pragma once
// Blocks with fresh random data of any kind, and a walk over the instruction sets that kernels are compiled for.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/block.hpp"

namespace rowmill::test {

constexpr DType all_types[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                               DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

/// Runs `body(name)` once for every instruction set this machine has.
void for_each_target(const std::function<void(const std::string&)>& body);

struct BlockShape {
  std::int64_t rows = 1, columns = 1;
  ElementType type;
  std::int64_t gap = 0;  ///< elements between rows, all bits set there (NaN in floating types)
  bool sparse = false;   ///< else dense
  bool masked = false;   ///< a missing mask, with a gap of its own
  double nan_share = 0;  ///< of elements of floating types
  std::int64_t first_row = 0;
  /// Draws a value; whole numbers in [-60, 60] if empty (their magnitude in unsigned types).
  std::function<double(std::mt19937_64&)> draw;
};

/// Dense, without gaps, in this machine's byte order.
BlockShape plain_shape(std::int64_t rows, std::int64_t columns, DType type);

/// Owns a block's memory.
class RandomBlock {
 public:
  RandomBlock(const BlockShape& shape, std::mt19937_64& random);
  const Block& block() const { return block_; }
  void set(std::int64_t row, std::int64_t column, double value);  ///< dense only

 private:
  std::vector<std::byte> data_;
  std::vector<std::uint8_t> mask_;
  std::vector<std::int64_t> row_start_, index_;
  Block block_;
};

/// Writes the value, which must be exact in the type (rounded in f32 and bf16), in the type's byte order.
void encode(double value, ElementType type, std::byte* to);

/// A shape drawn at random: sizes lie around tile and vector bounds.
BlockShape random_shape(std::mt19937_64& random);
std::string describe(const BlockShape& shape);

}  // namespace rowmill::test
