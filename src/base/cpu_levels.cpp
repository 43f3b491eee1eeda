// CPUID leaves 1 and 0x80000001 (Intel SDM volume 2A).
#include "base/cpu_levels.h"

#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cairn {

std::vector<IsaLevel> levels_of(const CpuFeatures& features) {
  std::vector<IsaLevel> levels;
  for (const IsaLevel level : {IsaLevel::scalar, IsaLevel::avx2, IsaLevel::avx2_vnni,
                               IsaLevel::avx512_vnni, IsaLevel::amx, IsaLevel::neon_dot}) {
    if (runs_on(level, features)) levels.push_back(level);
  }
  return levels;
}

std::string names_of_levels(const CpuFeatures& features) {
  std::string names;
  for (const IsaLevel level : levels_of(features)) {
    if (!names.empty()) names += ", ";
    names += name(level);
  }
  return names;
}

std::string missing_from_oldest() {
  std::string missing;
#if defined(__x86_64__)
  uint32_t unused = 0, basic = 0, extended = 0;
  __get_cpuid(1, &unused, &unused, &basic, &unused);
  __get_cpuid(0x80000001, &unused, &unused, &extended, &unused);
  const std::pair<bool, const char*> needed[] = {
      {(basic >> 0 & 1) != 0, "SSE3"},        {(basic >> 9 & 1) != 0, "SSSE3"},
      {(basic >> 13 & 1) != 0, "CMPXCHG16B"}, {(basic >> 19 & 1) != 0, "SSE4.1"},
      {(basic >> 20 & 1) != 0, "SSE4.2"},     {(basic >> 23 & 1) != 0, "POPCNT"},
      {(extended >> 0 & 1) != 0, "LAHF"},
  };
  for (const auto& [is_there, name] : needed) {
    if (is_there) continue;
    if (!missing.empty()) missing += ", ";
    missing += name;
  }
#endif
  return missing;
}

}  // namespace cairn
