// The kernels of the matrix products and of the quantizer that feeds them: which one computes an op
// at a level of instruction sets. All of them give the reference's bits.
#pragma once

#include "backends/host/host.h"

namespace cairn::cpu {

// The kernel for `op`, or one without `run` where there is none for this op or level, or where the
// op's weight was not loaded: then the reference's computes it. Thread-safe.
host::HostKernel choose_matrix_kernel(const Op& op, IsaLevel isa);

}  // namespace cairn::cpu
