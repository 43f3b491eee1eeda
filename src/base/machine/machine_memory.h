// How much memory the machine has, and how much of it this process may still take.
// Thread rule: pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

// What this process may still take, whoever sets the limit.
struct MemoryRoom {
  size_t bytes = 0;             // 0: nobody says.
  std::string_view limited_by;  // What that is: "MemAvailable", "control group", "ulimit -v" …
  size_t address_bytes = SIZE_MAX;  // Addresses that may be reserved, used or not.
};
// The least of what the machine has available, its control groups allow
// (base/machine/control_groups.h), the limits of the process leave, and, on machines that promise
// no more than they have, what they may promise. `root` is where /proc and /sys lie: tests have
// trees of their own.
MemoryRoom read_memory_room(const std::string& root = "");

// Bytes of this process that are in the machine's memory now (its resident set); 0 where the system
// does not say.
size_t resident_bytes();
// Those of them that are pages of files: models, programs, caches of packed weights. Likewise.
size_t resident_file_bytes();

}  // namespace cairn
