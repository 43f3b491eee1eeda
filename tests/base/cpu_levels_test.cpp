// The levels that a machine has.
#include "base/cpu_levels.h"

#include <gtest/gtest.h>

namespace cairn::cpu_levels_test {
namespace {

TEST(CpuLevels, AreThoseThatRun) {
  CpuFeatures features;
  EXPECT_EQ(levels_of(features), std::vector{IsaLevel::scalar});
  features = {.avx2 = true, .fma = true, .f16c = true, .avx512 = true};
  features.avx512_vnni = features.avx512_vbmi = features.amx_int8 = true;
  EXPECT_EQ(names_of_levels(features), "scalar, avx2, avx512_vnni, amx");
  features.avx_vnni = true;
  EXPECT_EQ(names_of_levels(features), "scalar, avx2, avx2_vnni, avx512_vnni, amx");
  EXPECT_EQ(levels_of(features).back(), best_isa(features));
}

TEST(CpuLevels, ThisMachineIsNotTooOld) {
  EXPECT_EQ(missing_from_oldest(), "");
}

}  // namespace
}  // namespace cairn::cpu_levels_test
