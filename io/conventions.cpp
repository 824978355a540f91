#include "io/conventions.hpp"

#include <nlohmann/json.hpp>

#include "io/json_numbers.hpp"

namespace rowmill {

namespace {

using nlohmann::json;

json plain(const Number& number) {
  return json::array({static_cast<int>(number.kind), number.bits});
}

Number number_from(const json& pair) {
  const int kind = whole_number<int>(pair.at(0));
  return {kind == 0   ? Number::Kind::signed_integer
          : kind == 1 ? Number::Kind::unsigned_integer
                      : Number::Kind::floating,
          whole_number<std::uint64_t>(pair.at(1))};
}

std::optional<Number> optional_number(const json& from, const char* name) {
  if (!from.contains(name)) return {};
  return number_from(from.at(name));
}

}  // namespace

// numbers travel as their bits: JSON has neither infinities nor NaN
json to_plain_json(const Conventions& conventions) {
  json to = {{"missing", json::array()}};
  for (const Number& number : conventions.missing) to["missing"].push_back(plain(number));
  if (conventions.least) to["least"] = plain(*conventions.least);
  if (conventions.most) to["most"] = plain(*conventions.most);
  if (conventions.scale) to["scale"] = plain(Number::of(*conventions.scale));
  if (conventions.offset) to["offset"] = plain(Number::of(*conventions.offset));
  return to;
}

Conventions conventions_from(const json& from) {
  Conventions conventions;
  for (const json& number : from.at("missing")) conventions.missing.push_back(number_from(number));
  conventions.least = optional_number(from, "least");
  conventions.most = optional_number(from, "most");
  if (const auto scale = optional_number(from, "scale")) conventions.scale = scale->value();
  if (const auto offset = optional_number(from, "offset")) conventions.offset = offset->value();
  return conventions;
}

}  // namespace rowmill
