// What the control groups that this process is in allow it to use: how Linux bounds containers.
// Both versions; of a group and those above it, the tightest counts.
// Thread rule: pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace cairn {

struct ControlGroupLimits {
  // The memory limit less what is in use; caches of files count as free, since they give way.
  size_t free_bytes = SIZE_MAX;
  double cpus = std::numeric_limits<double>::infinity();  // CPU time for each second.
};

// Without limits where there are no control groups. `root` is where /proc and /sys lie: tests have
// trees of their own.
ControlGroupLimits read_control_groups(const std::string& root = "");

}  // namespace cairn
