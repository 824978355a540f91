// Vectors of doubles from elements of a stored type; compiled once for each target (see simd.hpp).
#if defined(ROWMILL_KERNELS_HOST_LOAD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ROWMILL_KERNELS_HOST_LOAD_INL_HPP
#undef ROWMILL_KERNELS_HOST_LOAD_INL_HPP
#else
#define ROWMILL_KERNELS_HOST_LOAD_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/block.hpp"

HWY_BEFORE_NAMESPACE();
namespace rowmill::host::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using DoubleVector = hn::Vec<Doubles>;

/// Elements of type T as the widest vector of doubles, exactly.
HWY_INLINE DoubleVector load_doubles(Doubles d, const double* from) {
  return hn::LoadU(d, from);
}
HWY_INLINE DoubleVector load_doubles(Doubles d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Doubles>(), from));
}
HWY_INLINE DoubleVector load_doubles(Doubles d, const hwy::float16_t* from) {
  const hn::Rebind<float, Doubles> floats;
  return hn::PromoteTo(d, hn::PromoteTo(floats, hn::LoadU(hn::Rebind<hwy::float16_t, Doubles>(), from)));
}
HWY_INLINE DoubleVector load_doubles(Doubles d, const hwy::bfloat16_t* from) {
  const hn::Rebind<float, Doubles> floats;
  return hn::PromoteTo(d, hn::PromoteTo(floats, hn::LoadU(hn::Rebind<hwy::bfloat16_t, Doubles>(), from)));
}
HWY_INLINE DoubleVector load_doubles(Doubles d, const std::int32_t* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::int32_t, Doubles>(), from));
}
/// i8, u8, i16, u16.
template <typename T>
HWY_INLINE DoubleVector load_doubles(Doubles d, const T* from) {
  const hn::Rebind<std::int32_t, Doubles> integers;
  return hn::PromoteTo(d, hn::PromoteTo(integers, hn::LoadU(hn::Rebind<T, Doubles>(), from)));
}

/// Calls body(const T* data) for dense rows whose type load_doubles takes as it lies. False if there is no such way.
template <typename Body>
HWY_INLINE bool with_plain_data(const Block& block, Body&& body) {
  const auto* const dense = std::get_if<DenseRows>(&block.x);
  if (dense == nullptr || block.missing) return false;
  if (dense->type.swapped && size_of(dense->type) > 1) return false;
  switch (dense->type.dtype) {
// what Highway 1.0.3 makes of infinite and NaN halves without vectors is wrong
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    case DType::f16:
      return body(reinterpret_cast<const hwy::float16_t*>(dense->data)), true;
#endif
    case DType::bf16:
      return body(reinterpret_cast<const hwy::bfloat16_t*>(dense->data)), true;
    case DType::f32:
      return body(reinterpret_cast<const float*>(dense->data)), true;
    case DType::f64:
      return body(reinterpret_cast<const double*>(dense->data)), true;
    case DType::i8:
      return body(reinterpret_cast<const std::int8_t*>(dense->data)), true;
    case DType::u8:
      return body(reinterpret_cast<const std::uint8_t*>(dense->data)), true;
    case DType::i16:
      return body(reinterpret_cast<const std::int16_t*>(dense->data)), true;
    case DType::u16:
      return body(reinterpret_cast<const std::uint16_t*>(dense->data)), true;
    case DType::i32:
      return body(reinterpret_cast<const std::int32_t*>(dense->data)), true;
    default:
      return false;
  }
}

}  // namespace rowmill::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
