// Whether the upper halves of this thread's vector registers are clear, as code for older
// instruction sets wants to find them (backends/cpu/ops.h). For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/cpu_features.h"

namespace cairn {

inline bool upper_halves_are_clear() {
  uint64_t halves[32] = {};
#if defined(__x86_64__)
  static const bool has_halves = runs_on(IsaLevel::avx2, detect_cpu_features());
  if (!has_halves) return true;
#define CAIRN_STORE_HALF(n) "vextractf128 $1, %%ymm" #n ", 16*" #n "(%0)\n"
  asm volatile(CAIRN_STORE_HALF(0) CAIRN_STORE_HALF(1) CAIRN_STORE_HALF(2) CAIRN_STORE_HALF(3)
                   CAIRN_STORE_HALF(4) CAIRN_STORE_HALF(5) CAIRN_STORE_HALF(6) CAIRN_STORE_HALF(7)
                       CAIRN_STORE_HALF(8) CAIRN_STORE_HALF(9) CAIRN_STORE_HALF(10)
                           CAIRN_STORE_HALF(11) CAIRN_STORE_HALF(12) CAIRN_STORE_HALF(13)
                               CAIRN_STORE_HALF(14) CAIRN_STORE_HALF(15)
               :
               : "r"(halves)
               : "memory");
#undef CAIRN_STORE_HALF
#endif
  return std::all_of(std::begin(halves), std::end(halves), [](uint64_t half) { return half == 0; });
}

}  // namespace cairn
