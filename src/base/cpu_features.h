// What this machine's CPU and operating system allow, asked by CPUID and XGETBV, never guessed from
// a family or model number. Knows no kernels; backends choose theirs by IsaLevel.
// Thread rule: pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
};

// All false on other architectures.
CpuFeatures detect_cpu_features();

// What the CPU lacks of the oldest kind that is supported, by name; empty where that is nothing.
// The oldest kind is x86-64-v2 (x86-64 psABI, 3.1.1); on other architectures there is no such
// limit.
std::string missing_from_oldest();

// The levels for which kernels are built; each includes the ones above it in this list, except that
// avx512_vnni and amx do not need avx2_vnni (AVX-VNNI is a separate encoding).
enum class IsaLevel { scalar, avx2, avx2_vnni, avx512_vnni, amx };

IsaLevel best_isa(const CpuFeatures& features);
// Whether kernels of that level run on a machine with these features.
bool runs_on(IsaLevel level, const CpuFeatures& features);

// Those levels, from the simplest to the best.
std::vector<IsaLevel> levels_of(const CpuFeatures& features);
// Their names, for messages.
std::string names_of_levels(const CpuFeatures& features);

std::string_view name(IsaLevel level);
// Errors: invalid_argument, which lists the names there are.
Result<IsaLevel> parse_isa(std::string_view text);

}  // namespace cairn
