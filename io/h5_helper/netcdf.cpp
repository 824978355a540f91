#include "io/h5_helper/netcdf.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "io/conventions.hpp"
#include "io/h5_helper/attributes.hpp"
#include "io/h5_helper/plan.hpp"
#include "io/h5_helper/unwritten.hpp"

namespace rowmill::h5 {

namespace {

/// NC_FILL_FLOAT and NC_FILL_DOUBLE of netcdf.h.
constexpr double kFloatFill = 9.9692099683868690e+36;

/// netcdf.h, NC_FILL_…; bytes have none, since all of their values are meant.
std::optional<Number> default_fill(DType type) {
  switch (type) {
    case DType::i16:
      return Number::of(std::int64_t{-32767});
    case DType::u16:
      return Number::of(std::uint64_t{65535});
    case DType::i32:
      return Number::of(std::int64_t{-2147483647});
    case DType::u32:
      return Number::of(std::uint64_t{4294967295U});
    case DType::i64:
      return Number::of(std::int64_t{-9223372036854775806});
    case DType::u64:
      return Number::of(std::uint64_t{18446744073709551614U});
    case DType::f32:
    case DType::f64:
      return Number::of(kFloatFill);
    default:
      return {};
  }
}

DType other_sign(DType type) {
  switch (type) {
    case DType::i8:
      return DType::u8;
    case DType::i16:
      return DType::u16;
    case DType::i32:
      return DType::u32;
    case DType::i64:
      return DType::u64;
    case DType::u8:
      return DType::i8;
    case DType::u16:
      return DType::i16;
    case DType::u32:
      return DType::i32;
    case DType::u64:
      return DType::i64;
    default:
      return type;
  }
}

bool is_signed(DType type) {
  return type == DType::i8 || type == DType::i16 || type == DType::i32 || type == DType::i64;
}

/// "true" and "false" of _Unsigned, as the data set's type is to be read.
DType type_by_unsigned(const OpenedDataset& dataset, nlohmann::json& warnings) {
  const DType stored = dataset.element().type.dtype;
  std::string text = text_attribute(dataset.id(), "_Unsigned").value_or("");
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!is_integer(stored) || (text != "true" && text != "false") || is_signed(stored) != (text == "true"))
    return stored;
  if (dataset.element().convert) {
    warnings.push_back("_Unsigned is not applied: its integers do not fill their bytes");
    return stored;
  }
  return other_sign(stored);
}

/// Attributes are written in the variable's signed type though they mean unsigned numbers, and the other way round.
Number as_type(Number number, DType type) {
  const auto bits = static_cast<unsigned>(8 * size_of(type));
  if (!is_integer(type)) return number;
  if (!is_signed(type) && number.kind == Number::Kind::signed_integer) {
    const std::int64_t value = number.as_signed();
    if (value >= 0 || value < -(std::int64_t{1} << (bits - 1))) return number;
    return Number::of(number.bits & (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1));
  }
  if (is_signed(type) && number.kind == Number::Kind::unsigned_integer) {
    const bool high = bits == 64 ? number.bits >> 63 != 0 : number.bits >> (bits - 1) == 1;
    if (!high) return number;
    return Number::of(static_cast<std::int64_t>(bits == 64 ? number.bits : number.bits - (std::uint64_t{1} << bits)));
  }
  return number;
}

class Reader {
 public:
  Reader(const OpenedDataset& dataset, DType type, nlohmann::json& warnings)
      : dataset_(dataset), type_(type), reinterpreted_(type != dataset.element().type.dtype), warnings_(warnings) {}

  Conventions read() {
    Conventions result;
    read_missing(result);
    read_limits(result);
    result.scale = factor("scale_factor");
    result.offset = factor("add_offset");
    return result;
  }

 private:
  std::vector<Number> numbers(const char* name, std::size_t most) {
    std::vector<Number> found = number_attribute(dataset_.id(), name);
    if (found.size() > most || (found.empty() && has_attribute(dataset_.id(), name))) {
      warnings_.push_back(std::string("its attribute ") + name + " is not applied: it is not what netCDF means by it");
      found.clear();
    }
    for (Number& number : found) number = reinterpreted_ ? as_type(number, type_) : number;
    return found;
  }

  void read_missing(Conventions& result) {
    result.missing = numbers("_FillValue", 1);
    if (result.missing.empty() && !leaves_buffer(dataset_.creation())) {
      const DType stored = dataset_.element().type.dtype;
      if (const auto fill = default_fill(stored)) result.missing = {reinterpreted_ ? as_type(*fill, type_) : *fill};
    }
    for (const Number& number : numbers("missing_value", 1000)) result.missing.push_back(number);
    // NaN is missing in any case
    std::erase_if(result.missing, [](const Number& n) { return std::isnan(n.value()); });
  }

  void read_limits(Conventions& result) {
    const auto single = [&](const char* name) {
      const std::vector<Number> found = numbers(name, 1);
      return found.empty() ? std::nullopt : std::optional<Number>(found[0]);
    };
    result.least = single("valid_min");
    result.most = single("valid_max");
    const std::vector<Number> range = numbers("valid_range", 2);
    if (range.size() == 2) {
      result.least = range[0];
      result.most = range[1];
    }
  }

  std::optional<double> factor(const char* name) {
    const std::vector<Number> found = number_attribute(dataset_.id(), name);
    if (found.size() == 1 && std::isfinite(found[0].value())) return found[0].value();
    if (!has_attribute(dataset_.id(), name)) return {};
    throw Refusal(std::string("its attribute ") + name +
                  " is not one finite number: correct it, or read the numbers as they are stored with --format hdf5");
  }

  const OpenedDataset& dataset_;
  DType type_;
  bool reinterpreted_;
  nlohmann::json& warnings_;
};

}  // namespace

void add_netcdf_conventions(const OpenedDataset& dataset, nlohmann::json& json) {
  const DType type = type_by_unsigned(dataset, json["warnings"]);
  json["dtype"] = static_cast<int>(type);
  if (type != dataset.element().type.dtype) json["stored_type"] = name_of(type);
  const Conventions conventions = Reader(dataset, type, json["warnings"]).read();
  if (conventions.any()) json["conventions"] = to_plain_json(conventions);
}

bool has_netcdf_fill(const OpenedDataset& dataset) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_DEFAULT;
  double value = 0;
  const bool read =
      is_floating(dataset.element().type.dtype) && H5Pfill_value_defined(dataset.creation(), &defined) >= 0 &&
      defined == H5D_FILL_VALUE_USER_DEFINED && H5Pget_fill_value(dataset.creation(), H5T_NATIVE_DOUBLE, &value) >= 0;
  H5Eclear2(H5E_DEFAULT);
  return read && (value == kFloatFill || value == static_cast<double>(static_cast<float>(kFloatFill)));
}

bool is_dimension(hid_t dataset) {
  return text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
}

}  // namespace rowmill::h5
