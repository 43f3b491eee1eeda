// The kernels of ops.cpp for AVX2 with FMA and F16C: binds the kernel templates to the
// vector, and nothing else.
#include "backends/cpu/lanes/lanes_avx2.h"
#include "backends/cpu/ops_table.h"

namespace cairn::avx2 {

constinit const cpu::OpsTable ops_table = make_ops_table<Lanes>();

}  // namespace cairn::avx2
