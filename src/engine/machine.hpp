#pragma once
// What this node has: processors that we may use, memory that is free.
#include <cstdint>
#include <string>

namespace rowmill {

/// Processors in this process's affinity mask, and a cgroup's CPU quota where it is smaller; at least 1.
int usable_processors();

/// Bytes that may still be used on this node: the kernel's MemAvailable, or what a cgroup limit leaves if less.
std::int64_t available_memory();

/// Bytes of memory that this process occupies now, and at most so far.
std::int64_t resident_memory();
std::int64_t peak_resident_memory();

/// At most so far of any process that this one has started, that goes by `program` and still runs; 0 if there is none,
/// or if the system does not tell.
std::int64_t peak_memory_of_children(const std::string& program);

}  // namespace rowmill
