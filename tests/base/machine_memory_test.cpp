// The machine's memory, from a text and from the machine.
#include "base/machine_memory.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(MachineMemory, ReadsKibibytesByName) {
  const MachineMemory memory = parse_machine_memory(
      "MemTotal:       24580000 kB\nMemFree:          123456 kB\nMemAvailable:   20000001 kB\n");
  EXPECT_EQ(memory.total_bytes, size_t(24580000) * 1024);
  EXPECT_EQ(memory.available_bytes, size_t(20000001) * 1024);
}

TEST(MachineMemory, IsZeroWhereNothingIsSaid) {
  for (const char* text : {"", "MemTotal:", "MemTotal:   x kB", "MemAvailable:    "}) {
    const MachineMemory memory = parse_machine_memory(text);
    EXPECT_EQ(memory.total_bytes, 0u) << text;
    EXPECT_EQ(memory.available_bytes, 0u) << text;
  }
}

TEST(MachineMemory, IsPlausibleHere) {
  const MachineMemory memory = read_machine_memory();
  EXPECT_GT(memory.total_bytes, size_t(1) << 26);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace cairn
