// The kernels of ops.cpp for AVX-512: binds the kernel templates to the vector.
#include "backends/cpu/lanes/lanes_avx512.h"
#include "backends/cpu/ops_table.h"

namespace cairn::avx512 {

// Widening is no work for the multiplier of the machines that this was measured on (Zen 4); those
// with tiles have two, of which one widens too.
constinit const cpu::OpsTable ops_table = make_ops_table<Lanes>(cpu::kAttendQueries);
constinit const cpu::OpsTable attention_beside_tiles = make_ops_table<Lanes>();

}  // namespace cairn::avx512
