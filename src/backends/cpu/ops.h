// Chooses the vector kernel of every op that is not a matrix product, by the level of instruction
// sets. All of them compute the reference's bits.
#pragma once

#include "backends/host/host.h"

namespace cairn::cpu {

// The kernel for `op`, or one without `run` where there is none for this op or level: then the
// reference's computes it. Thread-safe.
host::HostKernel choose_ops_kernel(const Op& op, IsaLevel isa);

}  // namespace cairn::cpu
