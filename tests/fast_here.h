// Whether this machine computes by numerics id fast-1.
#pragma once

#include "base/cpu_features.h"
#include "base/cpu_levels.h"

namespace cairn::test {

inline bool has_fast() {
  const CpuFeatures features = detect_cpu_features();
  return runs_on(IsaLevel::avx512_vnni, features) && features.avx512_bf16 &&
         (!runs_on(IsaLevel::amx, features) || features.amx_bf16);
}

}  // namespace cairn::test
