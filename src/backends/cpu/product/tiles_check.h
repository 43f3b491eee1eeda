// Whether AMX may be used: the operating system must allow it, and its products must equal those of
// AVX-512, which detects a processor or an emulator whose tiles are wrong. And where it is worth
// using: that differs from one processor to the next. Thread rule: any thread;
// the permission is the whole program's.
#pragma once

#include "backends/cpu/product/product.h"
#include "base/cpu_features.h"
#include "device/numerics.h"

namespace cairn::cpu {

// Asks the system to lend this program the tiles' data: for all its threads, for good, and for the
// programs that it starts. False, with errno, where the system or the processor has none to lend.
bool ask_for_tiles();

// `wanted`; where that is amx and it cannot be used, avx512_vnni, and a warning says why.
IsaLevel usable_level(IsaLevel wanted, Numerics numerics = Numerics::exact_1);

// Whether AVX-512 multiplies weights with two scales for 32 columns (Q6_K, Q3_K) faster than tiles
// do; measured within a few milliseconds. REQUIRES: tiles are usable.
bool vectors_win_halves();

// Whether `a` multiplies a sample of weights with two scales a unit (`halves`), or with one, faster
// than `b`.
bool is_faster(const MatrixKernels& a, const MatrixKernels& b, bool halves);

// Whether both give the same bits for some small products of many rows.
bool same_products(const MatrixKernels& a, const MatrixKernels& b);
// Likewise for float weights, where all numbers and sums are integers that no rounding changes.
bool same_whole_products(const MatrixKernels& a, const MatrixKernels& b);

}  // namespace cairn::cpu
