#pragma once
// Memory and processors of one NUMA node. All of it is advice: where a node is unknown or the kernel refuses, memory is
// taken from anywhere and threads run anywhere.
#include <cstddef>
#include <string>
#include <vector>

namespace rowmill {

/// "0-3,8,10-11" → 0 1 2 3 8 10 11. Empty for text that is no such list.
std::vector<int> parse_processor_list(const std::string& text);

/// Processors of a node, from `folder`/nodeN/cpulist; empty where that cannot be read.
std::vector<int> processors_of_node(int node, const std::string& folder = "/sys/devices/system/node");

/// Keeps the calling thread on those of the processors that it may use already; false, and nothing changes, where there
/// are none of them.
bool stay_on(const std::vector<int>& processors);

/// Zeroed memory, 2 MiB aligned, in huge pages where they can be had, of the node (any node if `node` < 0), touched by
/// several threads at once: a first touch is dear. Null if there is none.
void* map_near(std::size_t bytes, int node) noexcept;
void unmap_near(void* memory, std::size_t bytes) noexcept;

}  // namespace rowmill
