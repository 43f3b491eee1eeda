// Chooses the vector kernel of every op that is not a matrix product, by the level of instruction
// sets. All of them compute the reference's bits.
#pragma once

#include "backends/host/host.h"

namespace cairn::cpu {

// The kernel for `op`, or one without `run` where there is none for this op or level: then the
// reference's computes it. Thread-safe.
host::HostKernel choose_ops_kernel(const Op& op, IsaLevel isa);

// What has to follow kernels of this level before other code runs; null: nothing. Wide registers
// whose upper halves are in use slow down each SSE instruction behind them on Intel's processors
// (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Mixing AVX code with SSE
// code"), and g++ 12 leaves some functions without the instruction that clears them.
host::AfterKernel after_kernels(IsaLevel isa);

}  // namespace cairn::cpu
