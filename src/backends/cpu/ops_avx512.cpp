// The kernels of ops.cpp for AVX-512: binds the kernel templates to the vector.
#include "backends/cpu/lanes/lanes_avx512.h"
#include "backends/cpu/ops_table.h"

namespace cairn::avx512 {

constinit const cpu::OpsTable ops_table = make_ops_table<Lanes>();

}  // namespace cairn::avx512
