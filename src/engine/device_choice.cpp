#include "engine/device_choice.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace rowmill {

using nlohmann::json;

namespace {

std::vector<std::byte> as_bytes(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

json as_json(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return json::parse(text, text + bytes.size());
}

/// Why these ranks cannot compute on GPUs, or empty.
std::string why_not_cuda(const std::vector<DeviceFacts>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string& why = ranks[i].why_not;
    if (why.empty()) continue;
    const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const DeviceFacts& f) { return f.why_not == why; });
    return all ? why : "rank " + std::to_string(i) + ": " + why;
  }
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].name == ranks[0].name) continue;
    return "ranks 0 and " + std::to_string(i) + " have different GPUs (" + ranks[0].name + ", " + ranks[i].name +
           "), and a result would depend on which of them milled a block";
  }
  return {};
}

std::vector<int> sharing_of(const std::vector<DeviceFacts>& ranks) {
  std::vector<int> sharing;
  for (const DeviceFacts& mine : ranks) {
    const auto same = [&](const DeviceFacts& other) { return other.uuid == mine.uuid; };
    sharing.push_back(static_cast<int>(std::count_if(ranks.begin(), ranks.end(), same)));
  }
  return sharing;
}

/// "ranks 0 and 1 share one GPU (NVIDIA H200)", or empty.
std::string shared_gpu(const std::vector<DeviceFacts>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = i + 1; j < ranks.size(); ++j) {
      if (ranks[i].uuid != ranks[j].uuid) continue;
      return "ranks " + std::to_string(i) + " and " + std::to_string(j) + " share one GPU (" + ranks[i].name + ")";
    }
  }
  return {};
}

constexpr const char* one_rank_a_gpu = "start one rank a GPU and let every rank see all GPUs of its node";

DeviceChoice on_the_host(const DeviceWish& wish, const std::string& why_not) {
  DeviceChoice choice;
  if (wish.backend == "cuda") {
    choice.error = "--backend cuda cannot be had: " + why_not + ": leave it out, or give --backend host";
  } else if (wish.comm == "nccl") {
    choice.error = "--comm nccl needs a GPU on every rank: " + why_not + ": leave it out";
  } else if (wants_cuda(wish)) {
    choice.why_host = why_not;
  }
  return choice;
}

}  // namespace

std::vector<std::byte> DeviceFacts::serialise() const {
  return as_bytes({{"why_not", why_not}, {"name", name}, {"uuid", uuid}});
}

DeviceFacts DeviceFacts::deserialise(std::span<const std::byte> bytes) {
  const json all = as_json(bytes);
  return {all.at("why_not"), all.at("name"), all.at("uuid")};
}

std::vector<std::byte> DeviceChoice::serialise() const {
  return as_bytes({{"cuda", cuda},
                   {"nccl", nccl},
                   {"why_host", why_host},
                   {"warning", warning},
                   {"error", error},
                   {"sharing", sharing}});
}

DeviceChoice DeviceChoice::deserialise(std::span<const std::byte> bytes) {
  const json all = as_json(bytes);
  return {all.at("cuda"), all.at("nccl"), all.at("why_host"), all.at("warning"), all.at("error"), all.at("sharing")};
}

bool wants_cuda(const DeviceWish& wish) {
  return wish.backend == "auto" || wish.backend == "cuda";
}

DeviceChoice choose_for_all(const DeviceWish& wish, const std::vector<DeviceFacts>& ranks) {
  if (!wants_cuda(wish)) return on_the_host(wish, "--backend " + wish.backend + " was asked for");
  const std::string why_not = why_not_cuda(ranks);
  if (!why_not.empty()) return on_the_host(wish, why_not);
  DeviceChoice choice;
  choice.cuda = true;
  choice.sharing = sharing_of(ranks);
  const std::string shared = shared_gpu(ranks);
  if (shared.empty()) {
    choice.nccl = wish.comm == "nccl" || (wish.comm == "auto" && ranks.size() > 1);
  } else if (wish.comm == "nccl") {
    choice.error = "--comm nccl cannot be had: " + shared + ", which NCCL refuses: " + one_rank_a_gpu;
  } else {
    choice.warning = shared + ": they take turns on it, and sums go over MPI; " + one_rank_a_gpu;
  }
  return choice;
}

}  // namespace rowmill
