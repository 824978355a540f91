#pragma once
// The helper's end of the socket.
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

namespace rowmill::h5 {

struct Request {
  nlohmann::json json;
  std::string tail;
};

/// Empty when the program has closed its end. Throws std::exception for what is no request.
std::optional<Request> receive_request(int socket);

/// False when the program has closed its end.
bool send_answer(int socket, const nlohmann::json& json, std::span<const std::byte> tail);

}  // namespace rowmill::h5
