#include "core/numa.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

namespace rowmill {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;
constexpr int kMaxNodes = 1024;
constexpr int kMaxProcessor = 1 << 16;
constexpr int kPreferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h

/// Pages that are touched later come from the node while it has any (mbind(2); libnuma would be one more dependency).
void prefer_node(void* memory, std::size_t bytes, int node) noexcept {
  if (node < 0 || node >= kMaxNodes) return;
  constexpr int bits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, kMaxNodes / bits> nodes = {};
  nodes[static_cast<std::size_t>(node / bits)] = 1UL << (node % bits);
  ::syscall(SYS_mbind, memory, bytes, kPreferred, nodes.data(), static_cast<unsigned long>(kMaxNodes), 0U);
}

void touch(std::byte* from, std::byte* to) noexcept {
  for (volatile std::byte* at = from; at < to; at += kPage) *at = std::byte{0};
}

/// Each thread touches a run of huge pages.
void touch_in_parallel(std::byte* memory, std::size_t bytes) noexcept {
  constexpr std::size_t worth_a_thread = std::size_t{32} << 20;
  const std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  const std::size_t count = std::clamp<std::size_t>(bytes / worth_a_thread, 1, most);
  const std::size_t each = (bytes / count + kHugePage - 1) / kHugePage * kHugePage;
  std::byte* const end = memory + bytes;
  std::vector<std::thread> threads;
  std::byte* from = memory;
  try {
    threads.reserve(count);
    for (std::size_t i = 0; i + 1 < count; ++i, from += each) threads.emplace_back(touch, from, from + each);
  } catch (const std::exception&) {
    // no more threads: the rest is touched here
  }
  touch(from, end);
  for (auto& thread : threads) thread.join();
}

}  // namespace

std::vector<int> parse_processor_list(const std::string& text) {
  std::vector<int> processors;
  std::istringstream stream(text);
  for (std::string piece; std::getline(stream, piece, ',');) {
    std::istringstream range(piece);
    int first = 0, last = 0;
    char dash = 0;
    if (!(range >> first)) return {};
    if (!(range >> dash)) {
      last = first;
    } else if (dash != '-' || !(range >> last)) {
      return {};
    }
    if (first < 0 || last < first || last > kMaxProcessor) return {};
    for (int processor = first; processor <= last; ++processor) processors.push_back(processor);
  }
  return processors;
}

std::vector<int> processors_of_node(int node, const std::string& folder) {
  if (node < 0) return {};
  std::ifstream file(folder + "/node" + std::to_string(node) + "/cpulist");
  std::string text;
  if (!std::getline(file, text)) return {};
  return parse_processor_list(text);
}

bool stay_on(const std::vector<int>& processors) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  for (const int processor : processors) {
    const auto bit = static_cast<std::size_t>(processor);
    if (processor < CPU_SETSIZE && CPU_ISSET(bit, &allowed)) CPU_SET(bit, &chosen);
  }
  return CPU_COUNT(&chosen) > 0 && sched_setaffinity(0, sizeof chosen, &chosen) == 0;
}

void* map_near(std::size_t bytes, int node) noexcept {
  if (bytes == 0 || bytes > SIZE_MAX - kHugePage) return nullptr;
  const std::size_t mapped = bytes + kHugePage;
  void* whole = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(whole);
  const std::uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (aligned + bytes + kPage - 1) / kPage * kPage;
  if (aligned > start) ::munmap(whole, aligned - start);
  if (end < start + mapped) ::munmap(reinterpret_cast<void*>(end), start + mapped - end);
  auto* memory = reinterpret_cast<std::byte*>(aligned);
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  prefer_node(memory, bytes, node);
  touch_in_parallel(memory, bytes);
  return memory;
}

void unmap_near(void* memory, std::size_t bytes) noexcept {
  if (memory != nullptr) ::munmap(memory, (bytes + kPage - 1) / kPage * kPage);
}

}  // namespace rowmill
