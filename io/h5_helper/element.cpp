#include "io/h5_helper/element.hpp"

#include <bit>
#include <optional>

#include "core/units.hpp"

namespace rowmill::h5 {

namespace {

DType integer_dtype(std::size_t bits, bool is_signed) {
  if (bits <= 8) return is_signed ? DType::i8 : DType::u8;
  if (bits <= 16) return is_signed ? DType::i16 : DType::u16;
  if (bits <= 32) return is_signed ? DType::i32 : DType::u32;
  return is_signed ? DType::i64 : DType::u64;
}

hid_t native(DType type) {
  switch (type) {
    case DType::i8:
      return H5T_NATIVE_INT8;
    case DType::i16:
      return H5T_NATIVE_INT16;
    case DType::i32:
      return H5T_NATIVE_INT32;
    case DType::i64:
      return H5T_NATIVE_INT64;
    case DType::u8:
      return H5T_NATIVE_UINT8;
    case DType::u16:
      return H5T_NATIVE_UINT16;
    case DType::u32:
      return H5T_NATIVE_UINT32;
    case DType::u64:
      return H5T_NATIVE_UINT64;
    case DType::f32:
      return H5T_NATIVE_FLOAT;
    default:
      return H5T_NATIVE_DOUBLE;
  }
}

bool is_swapped(hid_t datatype) {
  const bool big = H5Tget_order(datatype) == H5T_ORDER_BE;
  return H5Tget_size(datatype) > 1 && big != (std::endian::native == std::endian::big);
}

/// Integers and bit fields. Bits that fill their bytes are delivered as stored.
Element integer(hid_t datatype, bool is_signed, const std::string& word) {
  const std::size_t size = H5Tget_size(datatype), precision = H5Tget_precision(datatype);
  const H5T_order_t order = H5Tget_order(datatype);
  Element e;
  e.text = word + std::to_string(precision);
  if (precision == 0 || precision > 64) return e;
  e.numeric = true;
  e.type.dtype = integer_dtype(precision, is_signed);
  const bool plain_order = order == H5T_ORDER_LE || order == H5T_ORDER_BE || size == 1;
  e.convert = !(size_of(e.type.dtype) == size && precision == 8 * size && plain_order);
  if (!e.convert) e.type.swapped = is_swapped(datatype);
  if (e.convert && precision != 8 * size) e.text += " in " + counted(static_cast<std::int64_t>(size), "byte");
  return e;
}

struct FloatFormat {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0, bias = 0;
  friend bool operator==(const FloatFormat&, const FloatFormat&) = default;
};

std::optional<DType> standard_float(hid_t datatype) {
  FloatFormat f;
  if (H5Tget_fields(datatype, &f.sign, &f.exponent, &f.exponent_bits, &f.mantissa, &f.mantissa_bits) < 0) return {};
  f.bias = H5Tget_ebias(datatype);
  if (H5Tget_norm(datatype) != H5T_NORM_IMPLIED || H5Tget_offset(datatype) != 0) return {};
  if (H5Tget_precision(datatype) != 8 * H5Tget_size(datatype)) return {};
  if (f == FloatFormat{15, 10, 5, 0, 10, 15}) return DType::f16;
  if (f == FloatFormat{15, 7, 8, 0, 7, 127}) return DType::bf16;
  if (f == FloatFormat{31, 23, 8, 0, 23, 127}) return DType::f32;
  if (f == FloatFormat{63, 52, 11, 0, 52, 1023}) return DType::f64;
  return {};
}

Element floating(hid_t datatype) {
  const std::size_t size = H5Tget_size(datatype);
  const H5T_order_t order = H5Tget_order(datatype);
  Element e;
  const std::optional<DType> standard = standard_float(datatype);
  if (standard && size_of(*standard) == size && (order == H5T_ORDER_LE || order == H5T_ORDER_BE)) {
    e.numeric = true;
    e.type = {*standard, is_swapped(datatype)};
    e.text = name_of(*standard);
    return e;
  }
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  H5Tget_fields(datatype, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
  e.text = "float" + std::to_string(H5Tget_precision(datatype)) + " of " + std::to_string(exponent_bits) +
           " exponent and " + std::to_string(mantissa_bits) + " mantissa bits";
  // a double holds every value of these, so HDF5's conversion is exact
  e.numeric = size <= 8 && mantissa_bits <= 52 && exponent_bits >= 1 && exponent_bits <= 11;
  e.convert = true;
  e.type.dtype = DType::f64;
  return e;
}

std::string member_name(hid_t datatype, unsigned member) {
  char* name = H5Tget_member_name(datatype, member);
  if (name == nullptr) return "?";
  std::string text = name;
  H5free_memory(name);
  return text;
}

std::string compound_text(hid_t datatype) {
  const int members = H5Tget_nmembers(datatype);
  const auto pair_of = [&](const char* first, const char* second) {
    return members == 2 && member_name(datatype, 0) == first && member_name(datatype, 1) == second;
  };
  if (pair_of("r", "i") || pair_of("real", "imag")) {  // of h5py, of MATLAB
    return "complex" + std::to_string(8 * H5Tget_size(datatype));
  }
  std::string text = "compound {";
  for (int i = 0; i < members && i < 8; ++i) {
    text += (i == 0 ? "" : ", ") + member_name(datatype, static_cast<unsigned>(i)).substr(0, 40);
  }
  return text + (members > 8 ? ", …}" : "}");
}

/// h5py stores bool as an enum over int8 with FALSE = 0 and TRUE = 1.
bool is_bool_enum(hid_t datatype) {
  return H5Tget_size(datatype) == 1 && H5Tget_nmembers(datatype) == 2 && member_name(datatype, 0) == "FALSE" &&
         member_name(datatype, 1) == "TRUE";
}

Element enumeration(hid_t datatype) {
  const Id base(H5Tget_super(datatype), H5Tclose, "base type of an enum");
  Element e = classify(base);
  e.text = is_bool_enum(datatype) ? "bool" : "enum of " + e.text;
  // HDF5 does not convert enums to integers, so that an enum over an odd integer cannot be delivered
  if (e.convert) e.numeric = false;
  return e;
}

std::string other_text(hid_t datatype, H5T_class_t type_class) {
  switch (type_class) {
    case H5T_STRING:
      return H5Tis_variable_str(datatype) > 0 ? "variable-length string"
                                              : "string of " + std::to_string(H5Tget_size(datatype)) + " bytes";
    case H5T_COMPOUND:
      return compound_text(datatype);
    case H5T_REFERENCE:
      return H5Tequal(datatype, H5T_STD_REF_DSETREG) > 0 ? "region reference" : "object reference";
    case H5T_OPAQUE:
      return "opaque of " + std::to_string(H5Tget_size(datatype)) + " bytes";
    case H5T_VLEN:
      return "variable-length rows";
    case H5T_ARRAY:
      return "array type of " + std::to_string(H5Tget_size(datatype)) + " bytes";
    case H5T_TIME:
      return "time";
    default:
      return "unknown type";
  }
}

}  // namespace

Element classify(hid_t datatype) {
  const H5T_class_t type_class = H5Tget_class(datatype);
  switch (type_class) {
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(datatype) == H5T_SGN_2;
      return integer(datatype, is_signed, is_signed ? "int" : "uint");
    }
    case H5T_BITFIELD: {
      Element e = integer(datatype, false, "bitfield");
      if (e.convert) e.numeric = false;  // HDF5 does not convert bit fields to integers
      return e;
    }
    case H5T_FLOAT:
      return floating(datatype);
    case H5T_ENUM:
      return enumeration(datatype);
    default: {
      Element e;
      e.text = other_text(datatype, type_class);
      return e;
    }
  }
}

Id memory_type(hid_t datatype, const Element& element) {
  return Id(H5Tcopy(element.convert ? native(element.type.dtype) : datatype), H5Tclose, "datatype");
}

}  // namespace rowmill::h5
