#include <array>
#include <utility>

#include "kernels/ops.hpp"

namespace rowmill {

namespace {

constexpr std::array<std::pair<Precision, const char*>, 7> names = {{{Precision::fp64, "fp64"},
                                                                     {Precision::fp32, "fp32"},
                                                                     {Precision::tf32, "tf32"},
                                                                     {Precision::bf16, "bf16"},
                                                                     {Precision::fp16, "fp16"},
                                                                     {Precision::bf16x3, "bf16x3"},
                                                                     {Precision::int8, "int8"}}};

}  // namespace

std::string name_of(Precision precision) {
  for (const auto& [value, name] : names) {
    if (value == precision) return name;
  }
  return "?";
}

std::optional<Precision> parse_precision(const std::string& name) {
  for (const auto& [value, known] : names) {
    if (name == known) return value;
  }
  return std::nullopt;
}

}  // namespace rowmill
