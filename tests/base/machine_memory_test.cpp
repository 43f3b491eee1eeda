// The machine's memory, from a text and from the machine.
#include "base/machine/machine_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/scratch_folder.h"

namespace cairn::machine_memory_test {
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

// A machine's /proc and /sys, made up.
class MemoryRoomTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root() + path;
    std::filesystem::create_directories(whole.parent_path());
    test::write_to(whole.string(), text);
  }
  std::string root() const { return folder_.file("root"); }
  void limit_addresses(const std::string& soft) {
    write("/proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max data size             unlimited            unlimited            bytes     \n"
          "Max address space         " +
              soft + "            unlimited            bytes     \n");
  }

 private:
  test::ScratchFolder folder_;
};

TEST_F(MemoryRoomTest, IsTheLeastOfAllLimits) {
  EXPECT_EQ(read_memory_room(root()).bytes, 0u) << "nobody says";
  write("/proc/meminfo",
        "MemTotal: 9000 kB\nMemAvailable: 8000 kB\nCommitLimit: 5000 kB\nCommitted_AS: 4000 kB\n");
  EXPECT_EQ(read_memory_room(root()).bytes, size_t(8000) * 1024);
  EXPECT_EQ(read_memory_room(root()).limited_by, "MemAvailable");
  EXPECT_EQ(read_memory_room(root()).address_bytes, SIZE_MAX);
  write("/proc/self/cgroup", "0::/box\n");
  write("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("/sys/fs/cgroup/box/memory.max", "7000000\n");
  write("/sys/fs/cgroup/box/memory.current", "1000000\n");
  EXPECT_EQ(read_memory_room(root()).bytes, 6000000u);
  EXPECT_EQ(read_memory_room(root()).limited_by, "control group");
  limit_addresses("unlimited");
  EXPECT_EQ(read_memory_room(root()).bytes, 6000000u);
  // Pages of 4096 bytes: all addresses, resident, shared, code, 0, data.
  write("/proc/self/statm", "1000 400 300 200 0 500 0\n");
  limit_addresses("9096000");
  const MemoryRoom room = read_memory_room(root());
  EXPECT_EQ(room.bytes, 5000000u);
  EXPECT_EQ(room.limited_by, "ulimit -v");
  EXPECT_EQ(room.address_bytes, 5000000u);
  write("/proc/sys/vm/overcommit_memory", "0\n");
  EXPECT_EQ(read_memory_room(root()).bytes, 5000000u);
  write("/proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(read_memory_room(root()).bytes, size_t(1000) * 1024);
  EXPECT_EQ(read_memory_room(root()).limited_by, "CommitLimit");
  limit_addresses("4096");
  EXPECT_EQ(read_memory_room(root()).bytes, 1u) << "nothing is left, and that is known";
}

TEST(MachineMemory, IsPlausibleHere) {
  const MachineMemory memory = read_machine_memory();
  EXPECT_GT(memory.total_bytes, size_t(1) << 26);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
  EXPECT_GT(resident_file_bytes(), 0u);
  EXPECT_LT(resident_file_bytes(), resident_bytes());
}

}  // namespace
}  // namespace cairn::machine_memory_test
