// Finds in a recorded forward pass the ops that update recurrent states, and the values that these
// read from other ops. These values are logged, so that states can be replayed without weights, by
// the same kernels and hence with the same bits. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "device/op.h"
#include "graph/planner.h"

namespace cairn {

struct ReplayCut {
  std::vector<Op> step_ops;    // The recorded ops, with a StoreLog after each logged value.
  std::vector<Op> replay_ops;  // A LoadLog for each logged value, then the ops that update states.
  std::vector<int32_t> log_widths;  // By log plane.
};

// `ops` in the order in which they were recorded, with values named as graph/reference.h says.
ReplayCut cut_replay(const std::vector<Op>& ops, const std::vector<Value>& values);

}  // namespace cairn
