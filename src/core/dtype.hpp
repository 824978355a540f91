#pragma once
// Element types as they are stored in a source.
#include <cstddef>
#include <cstdint>
#include <string>

namespace rowmill {

/// Numeric types that kernels read. f16 is IEEE binary16, bf16 is the upper half of binary32.
enum class DType : std::uint8_t { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

/// A stored element: its type, and whether its bytes lie in the other order than this machine's.
struct ElementType {
  DType dtype = DType::f64;
  bool swapped = false;

  friend bool operator==(const ElementType&, const ElementType&) = default;
};

/// Bytes of one element.
std::size_t size_of(DType type);
inline std::size_t size_of(ElementType type) {
  return size_of(type.dtype);
}

/// "float32", "uint8", …
std::string name_of(DType type);
/// As `name_of`, with " big-endian" or " little-endian" appended where bytes are swapped.
std::string name_of(ElementType type);

bool is_floating(DType type);
bool is_integer(DType type);

/// True if every value of the type is exact in a float32 (f16, bf16, f32, and integers of up to 16 bits).
bool fits_float32(DType type);

}  // namespace rowmill
