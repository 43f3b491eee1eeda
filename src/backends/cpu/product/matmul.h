// Chooses the kernel of the matrix products, and of the quantizer of their activations, by the
// level of instruction sets. Those of exact-1 compute the reference's bits.
#pragma once

#include "backends/host/host.h"
#include "device/numerics.h"

namespace cairn::cpu {

// The kernel for `op`, or one without `run` where there is none for this op or level, or where the
// op's weight was not loaded: then the reference's computes it. Thread-safe.
// REQUIRES: lacks_for_fast(isa, …) is empty where fast-1 is chosen.
host::HostKernel choose_matrix_kernel(const Op& op, IsaLevel isa,
                                      Numerics numerics = Numerics::exact_1);

// What kernels of that level need for fast-1 and this CPU does not have; empty: nothing.
std::string_view lacks_for_fast(IsaLevel isa, const CpuFeatures& features);

}  // namespace cairn::cpu
