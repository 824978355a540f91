#include "io/h5_helper/channel.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>

#include "io/h5_helper/protocol.hpp"

namespace rowmill::h5 {

namespace {

bool receive_all(int socket, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

std::optional<Request> receive_request(int socket) {
  MessageHeader header;
  if (!receive_all(socket, &header, sizeof header)) return {};
  if (header.magic != kMagic || header.json_bytes > kMaxJsonBytes || header.tail_bytes > kMaxTailBytes) {
    throw std::runtime_error("not a request");
  }
  std::string text(header.json_bytes, '\0');
  Request request;
  request.tail.resize(header.tail_bytes);
  if (!receive_all(socket, text.data(), text.size())) return {};
  if (!receive_all(socket, request.tail.data(), request.tail.size())) return {};
  request.json = nlohmann::json::parse(text);
  return request;
}

bool send_answer(int socket, const nlohmann::json& json, std::span<const std::byte> tail) {
  // names in a file need not be UTF-8
  std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMaxJsonBytes) text = R"({"error": "it holds more names than can be listed: name a data set"})";
  MessageHeader header;
  header.json_bytes = static_cast<std::uint32_t>(text.size());
  header.tail_bytes = tail.size();
  return send_all(socket, &header, sizeof header) && send_all(socket, text.data(), text.size()) &&
         send_all(socket, tail.data(), tail.size());
}

}  // namespace rowmill::h5
