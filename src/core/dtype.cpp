#include "core/dtype.hpp"

#include <bit>

namespace rowmill {

std::size_t size_of(DType type) {
  switch (type) {
    case DType::i8:
    case DType::u8:
      return 1;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
  }
  return 0;
}

std::string name_of(DType type) {
  switch (type) {
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::i8:
      return "int8";
    case DType::i16:
      return "int16";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
    case DType::u16:
      return "uint16";
    case DType::u32:
      return "uint32";
    case DType::u64:
      return "uint64";
  }
  return "?";
}

std::string name_of(ElementType type) {
  if (!type.swapped || size_of(type) == 1) return name_of(type.dtype);
  return name_of(type.dtype) + (std::endian::native == std::endian::little ? " big-endian" : " little-endian");
}

bool is_floating(DType type) {
  return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64;
}

bool is_integer(DType type) {
  return !is_floating(type);
}

bool fits_float32(DType type) {
  return type != DType::f64 && size_of(type) <= 4 && type != DType::i32 && type != DType::u32;
}

}  // namespace rowmill
