#pragma once
// An answer of the HDF5 helper.
#include <nlohmann/json.hpp>
#include <vector>

#include "io/h5_helper_client.hpp"

namespace rowmill {

struct H5HelperClient::Answer {
  nlohmann::json json;
  std::vector<std::byte> tail;
};

}  // namespace rowmill
