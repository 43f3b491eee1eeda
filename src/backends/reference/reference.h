// The scalar backend: supports every op and defines its result (docs/numerics.md). Other backends
// fall back to its kernels and are tested against them.
#pragma once

#include "backends/host/host.h"

namespace cairn::reference {

// The reference kernel of an op; there is one for every op. Thread-safe.
host::HostKernel kernel_for(const Op& op);

}  // namespace cairn::reference
