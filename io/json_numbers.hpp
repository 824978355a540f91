#pragma once
// Integers out of JSON that may say anything: nlohmann-json's own get() casts floating-point numbers, which is
// undefined for those that the type does not hold.
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace rowmill {

/// Wraps around where T does not hold it. Throws nlohmann::json::exception for what is no integer.
template <std::integral T>
T whole_number(const nlohmann::json& from) {
  return static_cast<T>(from.get_ref<const nlohmann::json::number_integer_t&>());
}

template <std::integral T>
T whole_number(const nlohmann::json& object, const char* name, T otherwise) {
  const auto found = object.find(name);
  return found == object.end() ? otherwise : whole_number<T>(*found);
}

template <std::integral T>
std::vector<T> whole_numbers(const nlohmann::json& list) {
  std::vector<T> result;
  for (const nlohmann::json& number : list) result.push_back(whole_number<T>(number));
  return result;
}

}  // namespace rowmill
