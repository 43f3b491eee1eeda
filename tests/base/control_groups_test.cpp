// Limits of containers, in made-up trees of both versions.
#include "base/machine/control_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/scratch_folder.h"

namespace cairn::control_groups_test {
namespace {

class Tree {
 public:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root() + path;
    std::filesystem::create_directories(whole.parent_path());
    test::write_to(whole.string(), text);
  }
  std::string root() const { return folder_.file("root"); }
  ControlGroupLimits read() const { return read_control_groups(root()); }

  // A process in /box/task of a machine with version 2.
  void make_version_2() {
    write("/proc/self/cgroup", "0::/box/task\n");
    write("/proc/self/mountinfo",
          "22 1 0:20 / /proc rw - proc proc rw\n"
          "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

 private:
  test::ScratchFolder folder_;
};

constexpr const char* kGroup = "/sys/fs/cgroup/box/task";

TEST(ControlGroups, AreNoLimitWhereThereAreNone) {
  Tree tree;
  EXPECT_EQ(tree.read().free_bytes, SIZE_MAX);
  EXPECT_TRUE(std::isinf(tree.read().cpus));
  tree.make_version_2();  // Without files.
  EXPECT_EQ(tree.read().free_bytes, SIZE_MAX);
  EXPECT_TRUE(std::isinf(tree.read().cpus));
  tree.write(kGroup + std::string("/memory.max"), "max\n");
  tree.write(kGroup + std::string("/cpu.max"), "max 100000\n");
  EXPECT_EQ(tree.read().free_bytes, SIZE_MAX);
  EXPECT_TRUE(std::isinf(tree.read().cpus));
}

// What is in use counts, but for caches of files, which give way.
TEST(ControlGroups, Version2LeavesItsLimitLessUse) {
  Tree tree;
  tree.make_version_2();
  const std::string group = kGroup;
  tree.write(group + "/memory.max", "1000000\n");
  EXPECT_EQ(tree.read().free_bytes, 1000000u);
  tree.write(group + "/memory.current", "700000\n");
  EXPECT_EQ(tree.read().free_bytes, 300000u);
  tree.write(group + "/memory.stat",
             "anon 300000\nfile 400000\ninactive_file 250000\n"
             "active_file 50000\n");
  EXPECT_EQ(tree.read().free_bytes, 600000u);
  tree.write(group + "/memory.high", "500000\n");
  EXPECT_EQ(tree.read().free_bytes, 100000u);
  tree.write(group + "/memory.current", "2000000\n");
  EXPECT_EQ(tree.read().free_bytes, 0u);
  tree.write(group + "/cpu.max", "150000 100000\n");
  EXPECT_EQ(tree.read().cpus, 1.5);
}

TEST(ControlGroups, TheTightestOfTheGroupsAboveCounts) {
  Tree tree;
  tree.make_version_2();
  tree.write("/sys/fs/cgroup/box/task/memory.max", "5000000\n");
  tree.write("/sys/fs/cgroup/box/memory.max", "3000000\n");
  tree.write("/sys/fs/cgroup/box/memory.current", "1000000\n");
  tree.write("/sys/fs/cgroup/box/task/cpu.max", "400000 100000\n");
  tree.write("/sys/fs/cgroup/box/cpu.max", "300000 100000\n");
  tree.write("/sys/fs/cgroup/box/task/deeper/memory.max", "1\n");  // Not ours.
  EXPECT_EQ(tree.read().free_bytes, 2000000u);
  EXPECT_EQ(tree.read().cpus, 3);
}

// Inside a container the mounted folder is the group itself: by a namespace of its own, or since
// only a part of the tree was mounted.
TEST(ControlGroups, AreFoundInsideContainers) {
  Tree own;
  own.make_version_2();
  own.write("/proc/self/cgroup", "0::/\n");
  own.write("/sys/fs/cgroup/memory.max", "4096000\n");
  EXPECT_EQ(own.read().free_bytes, 4096000u);
  Tree part;
  part.write("/proc/self/cgroup", "0::/docker/abc/inner\n");
  part.write("/proc/self/mountinfo",
             "31 23 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
  part.write("/sys/fs/cgroup/inner/memory.max", "2048000\n");
  EXPECT_EQ(part.read().free_bytes, 2048000u);
  part.write("/sys/fs/cgroup/memory.max", "1024000\n");
  EXPECT_EQ(part.read().free_bytes, 1024000u);
}

TEST(ControlGroups, Version1HasAHierarchyForEachController) {
  Tree tree;
  tree.write("/proc/self/cgroup",
             "9:name=systemd:/\n4:memory:/box/1\n3:cpuset:/\n2:cpu,cpuacct:/box\n0::/\n");
  tree.write("/proc/self/mountinfo",
             "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
             "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
             "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  const std::string memory = "/sys/fs/cgroup/memory/box/1";
  tree.write(memory + "/memory.limit_in_bytes", "9223372036854771712\n");  // None.
  EXPECT_EQ(tree.read().free_bytes, SIZE_MAX);
  tree.write(memory + "/memory.limit_in_bytes", "8000000\n");
  tree.write(memory + "/memory.usage_in_bytes", "5000000\n");
  tree.write(memory + "/memory.stat",
             "cache 1\ntotal_inactive_file 1000000\ntotal_active_file 500000\n");
  EXPECT_EQ(tree.read().free_bytes, 4500000u);
  tree.write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_TRUE(std::isinf(tree.read().cpus));
  tree.write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(tree.read().cpus, 2.5);
}

TEST(ControlGroups, NonsenseIsNoLimit) {
  for (const char* groups : {"", ":", "::", "4:memory", "0::", "x\n\n:::\n"}) {
    for (const char* mounts : {"", " - ", "a b c - cgroup2 x y", "1 2 3 / /m - cgroup2 x y"}) {
      Tree tree;
      tree.write("/proc/self/cgroup", groups);
      tree.write("/proc/self/mountinfo", mounts);
      tree.write("/m/memory.max", "many");
      tree.write("/m/cpu.max", "0 0");
      EXPECT_EQ(tree.read().free_bytes, SIZE_MAX) << groups << mounts;
      EXPECT_TRUE(std::isinf(tree.read().cpus)) << groups << mounts;
    }
  }
}

}  // namespace
}  // namespace cairn::control_groups_test
