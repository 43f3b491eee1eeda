// Finds in a recorded forward pass what moves the recurrent states on, and what that reads from
// elsewhere. Logging these values makes states that can be computed again without weights, by the
// same kernels, hence with the same bits.
// Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "device/op.h"
#include "graph/planner.h"

namespace cairn {

struct ReplayCut {
  std::vector<Op> step_ops;         // The recorded ops, and behind each logged value a StoreLog.
  std::vector<Op> replay_ops;       // A LoadLog for each logged value, then what leads to states.
  std::vector<int32_t> log_widths;  // By log plane.
};

// `ops` in the order in which they were recorded, with values named as graph/reference.h says.
ReplayCut cut_replay(const std::vector<Op>& ops, const std::vector<Value>& values);

}  // namespace cairn
