// The detected features against the kernel's own list, and the choice of a level from them.
#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"

namespace cairn::cpu_features_test {
namespace {

constexpr CpuFeatures kAvx2 = {.avx2 = true, .fma = true, .f16c = true};

CpuFeatures with_avx512() {
  CpuFeatures features = kAvx2;
  features.avx512 = features.avx512_vnni = features.avx512_vbmi = true;
  return features;
}

// /proc/cpuinfo's words, which the kernel derives from CPUID in code of its own.
TEST(CpuFeatures, AgreeWithTheKernel) {
  Result<std::string> text = read_file("/proc/cpuinfo", 64 << 20);
  if (!text) GTEST_SKIP() << text.error().message;
#if defined(__x86_64__)
  const size_t begin = text->find("flags");
#elif defined(__aarch64__)
  const size_t begin = text->find("Features");
  if (begin == std::string::npos) GTEST_SKIP() << "an emulator shows the cpuinfo of its host";
#else
  GTEST_SKIP() << "no features are known of this machine";
#endif
  ASSERT_NE(begin, std::string::npos);
  std::istringstream line(text->substr(begin, text->find('\n', begin) - begin));
  const std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const CpuFeatures features = detect_cpu_features();
  EXPECT_EQ(features.avx2, has("avx2"));
  EXPECT_EQ(features.fma, has("fma"));
  EXPECT_EQ(features.f16c, has("f16c"));
  EXPECT_EQ(features.avx_vnni, has("avx_vnni"));
  EXPECT_EQ(features.avx512, has("avx512f") && has("avx512bw") && has("avx512dq") &&
                                 has("avx512vl") && has("avx512cd"));
  EXPECT_EQ(features.avx512_vnni, has("avx512_vnni"));
  EXPECT_EQ(features.avx512_vbmi, has("avx512vbmi"));
  EXPECT_EQ(features.avx512_bf16, has("avx512_bf16"));
  EXPECT_EQ(features.amx_int8, has("amx_int8"));
  EXPECT_EQ(features.amx_bf16, has("amx_bf16"));
  EXPECT_EQ(features.neon_dot, has("asimddp"));
}

TEST(IsaLevels, FollowTheFeatures) {
  EXPECT_EQ(best_isa({}), IsaLevel::scalar);
  EXPECT_EQ(best_isa({.avx2 = true}), IsaLevel::scalar) << "AVX2 without FMA has no kernels";
  EXPECT_EQ(best_isa(kAvx2), IsaLevel::avx2);
  CpuFeatures features = kAvx2;
  features.avx_vnni = true;
  EXPECT_EQ(best_isa(features), IsaLevel::avx2_vnni);
  EXPECT_EQ(best_isa(with_avx512()), IsaLevel::avx512_vnni);
  features = with_avx512();
  features.avx512_vnni = false;
  EXPECT_EQ(best_isa(features), IsaLevel::avx2);
  features = with_avx512();
  features.amx_int8 = true;
  EXPECT_EQ(best_isa(features), IsaLevel::amx);
  EXPECT_TRUE(runs_on(IsaLevel::avx2, features)) << "a lower level may be asked for";
  EXPECT_FALSE(runs_on(IsaLevel::avx2_vnni, features));
  EXPECT_EQ(best_isa({.neon_dot = true}), IsaLevel::neon_dot);
  EXPECT_FALSE(runs_on(IsaLevel::avx2, {.neon_dot = true}));
}

TEST(IsaLevels, HaveNames) {
  for (const IsaLevel level : {IsaLevel::scalar, IsaLevel::avx2, IsaLevel::avx2_vnni,
                               IsaLevel::avx512_vnni, IsaLevel::amx, IsaLevel::neon_dot}) {
    Result<IsaLevel> parsed = parse_isa(name(level));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, level);
  }
  const Error error = parse_isa("sse9").error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_NE(error.message.find("avx2_vnni"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("sse9"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace cairn::cpu_features_test
