// The scalar backend: it supports every op, computes each exactly as docs/numerics.md defines it,
// and is what other backends fall back to and are compared with.
#pragma once

#include "backends/host/host.h"

namespace cairn::reference {

// The reference kernel of an op; there is one for every op. Thread-safe.
host::HostKernel kernel_for(const Op& op);

}  // namespace cairn::reference
