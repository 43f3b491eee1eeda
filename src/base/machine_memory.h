// How much memory the machine has, and how much of it a program may still take.
// Thread rule: pure, any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace cairn {

struct MachineMemory {
  size_t total_bytes = 0;
  // Free, or held only as a cache of files: what the kernel would give without swapping.
  size_t available_bytes = 0;
};

// Zeros where the system does not say.
MachineMemory read_machine_memory();
// The same from the text of Linux's /proc/meminfo.
MachineMemory parse_machine_memory(std::string_view meminfo);

// Bytes of this process that are in the machine's memory now (its resident set); 0 where the system
// does not say.
size_t resident_bytes();

}  // namespace cairn
