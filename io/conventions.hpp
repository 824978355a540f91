#pragma once
// What a format says about stored numbers beside their type: which of them are missing, and what the others mean.
// netCDF: NetCDF Users Guide, appendix "Attribute Conventions"; CF conventions 1.10, sections 2.5.1 and 8.1.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "io/number.hpp"

namespace rowmill {

struct Conventions {
  std::vector<Number> missing;          ///< values that stand for missing ones, as stored
  std::optional<Number> least, most;    ///< what lies outside is missing; as stored
  std::optional<double> scale, offset;  ///< stored · scale + offset, in fp64, after missing ones are known

  bool scaled() const { return scale.has_value() || offset.has_value(); }
  bool may_be_missing() const { return !missing.empty() || least || most; }
  bool any() const { return scaled() || may_be_missing(); }
};

nlohmann::json to_plain_json(const Conventions& conventions);
/// Throws nlohmann::json::exception for what is none.
Conventions conventions_from(const nlohmann::json& json);

}  // namespace rowmill
