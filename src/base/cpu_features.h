// What this machine's CPU and operating system allow, asked by CPUID and XGETBV (on ARM: the
// kernel's list of capabilities), never guessed from a family or model number. Knows no kernels;
// backends choose theirs by IsaLevel.
// Thread rule: pure.
#pragma once

#include <string_view>

#include "base/result.h"

namespace cairn {

// A feature is true only where the CPU has it and the operating system saves its registers.
struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512 = false;  // F, BW, CD, DQ and VL together.
  bool avx512_vnni = false;
  bool avx512_vbmi = false;
  bool avx512_bf16 = false;
  bool avx_vnni = false;
  bool amx_int8 = false;
  bool amx_bf16 = false;
  bool neon_dot = false;  // Products of four bytes at once (ARMv8.2 and later).
};

// All false on other architectures.
CpuFeatures detect_cpu_features();

// The levels for which kernels are built; each includes the ones above it in this list, except that
// avx512_vnni and amx do not need avx2_vnni (AVX-VNNI is a separate encoding), and neon_dot, of
// another machine, stands alone.
enum class IsaLevel { scalar, avx2, avx2_vnni, avx512_vnni, amx, neon_dot };

IsaLevel best_isa(const CpuFeatures& features);
// Whether kernels of that level run on a machine with these features.
bool runs_on(IsaLevel level, const CpuFeatures& features);

std::string_view name(IsaLevel level);
// Errors: invalid_argument, which lists the names there are.
Result<IsaLevel> parse_isa(std::string_view text);

}  // namespace cairn
