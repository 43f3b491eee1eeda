// CPUID leaves 1, 7/0, 7/1 and 0xD's register XCR0 (Intel SDM volume 2A; AMD APM volume 3); on ARM
// what the kernel tells each program of the CPU (getauxval).
#include "base/cpu_features.h"

#include <array>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace cairn {
namespace {

constexpr std::array kLevels = {IsaLevel::scalar,      IsaLevel::avx2, IsaLevel::avx2_vnni,
                                IsaLevel::avx512_vnni, IsaLevel::amx,  IsaLevel::neon_dot};

#if defined(__x86_64__)
struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf read_leaf(uint32_t leaf, uint32_t subleaf) {
  Leaf out;
  if (__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx) == 0) return {};
  return out;
}

// Which register files the operating system saves when it switches threads. The instruction is
// written out because the intrinsic would need the file to be compiled for it.
uint64_t saved_registers() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

bool has(uint32_t bits, int bit) {
  return (bits >> bit & 1u) != 0;
}
#endif

}  // namespace

CpuFeatures detect_cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  const Leaf basic = read_leaf(1, 0);
  const bool has_xgetbv = has(basic.ecx, 27);
  if (!has_xgetbv) return features;
  const uint64_t saved = saved_registers();
  const bool ymm = (saved & 0x6) == 0x6;            // SSE and AVX state.
  const bool zmm = (saved & 0xe6) == 0xe6;          // Those, masks and both halves of the zmm file.
  const bool tiles = (saved & 0x60000) == 0x60000;  // Tile configuration and tile data.
  const Leaf extended = read_leaf(7, 0);
  const Leaf more = extended.eax >= 1 ? read_leaf(7, 1) : Leaf{};

  const bool avx = ymm && has(basic.ecx, 28);
  features.fma = avx && has(basic.ecx, 12);
  features.f16c = avx && has(basic.ecx, 29);
  features.avx2 = avx && has(extended.ebx, 5);
  features.avx_vnni = features.avx2 && has(more.eax, 4);
  const uint32_t wide = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // F DQ CD BW VL.
  features.avx512 = zmm && features.avx2 && (extended.ebx & wide) == wide;
  features.avx512_vbmi = features.avx512 && has(extended.ecx, 1);
  features.avx512_vnni = features.avx512 && has(extended.ecx, 11);
  features.avx512_bf16 = features.avx512 && has(more.eax, 5);
  const bool amx = tiles && has(extended.edx, 24);
  features.amx_bf16 = amx && has(extended.edx, 22);
  features.amx_int8 = amx && has(extended.edx, 25);
#elif defined(__aarch64__)
  features.neon_dot = (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
  return features;
}

bool runs_on(IsaLevel level, const CpuFeatures& features) {
  const bool avx2 = features.avx2 && features.fma && features.f16c;
  const bool avx512 = avx2 && features.avx512 && features.avx512_vnni && features.avx512_vbmi;
  switch (level) {
    case IsaLevel::scalar:
      return true;
    case IsaLevel::avx2:
      return avx2;
    case IsaLevel::avx2_vnni:
      return avx2 && features.avx_vnni;
    case IsaLevel::avx512_vnni:
      return avx512;
    case IsaLevel::amx:
      return avx512 && features.amx_int8;
    case IsaLevel::neon_dot:
      return features.neon_dot;
  }
  return false;
}

IsaLevel best_isa(const CpuFeatures& features) {
  IsaLevel best = IsaLevel::scalar;
  for (const IsaLevel level : kLevels) {
    if (runs_on(level, features)) best = level;
  }
  return best;
}

std::string_view name(IsaLevel level) {
  switch (level) {
    case IsaLevel::scalar:
      return "scalar";
    case IsaLevel::avx2:
      return "avx2";
    case IsaLevel::avx2_vnni:
      return "avx2_vnni";
    case IsaLevel::avx512_vnni:
      return "avx512_vnni";
    case IsaLevel::amx:
      return "amx";
    case IsaLevel::neon_dot:
      return "neon_dot";
  }
  return "unknown";
}

Result<IsaLevel> parse_isa(std::string_view text) {
  std::string known;
  for (const IsaLevel level : kLevels) {
    if (text == name(level)) return level;
    known += known.empty() ? "" : ", ";
    known += name(level);
  }
  return fail(ErrorCode::invalid_argument, "isa: expected one of {}, found \"{}\"", known, text);
}

}  // namespace cairn
