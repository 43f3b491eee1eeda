// The kernels of ops.cpp for 64-bit ARM: binds the kernel templates to the vector.
#include "backends/cpu/lanes/lanes_neon.h"
#include "backends/cpu/ops_table.h"

namespace cairn::neon {

constinit const cpu::OpsTable ops_table = make_ops_table<Lanes>();

}  // namespace cairn::neon
