// Which packed form each block format gets, and where the formats of 256 weights keep their small
// scales. Knows the blocks' layout only as far as that.
#include <cstring>
#include <string_view>

#include "backends/cpu/pack/pack.h"
#include "quant/fp4.h"
#include "quant/iq4_levels.h"
#include "quant/k_scales.h"

namespace cairn::cpu {
namespace {

template <class T>
T read_at(const std::byte* block, size_t offset) {
  T value;
  std::memcpy(&value, block + offset, sizeof value);
  return value;
}

// u8 groups[16], pairs[64], f16 scale, min: the low nibble of a group is its scale.
SuperScales q2_k_scales(const std::byte* block) {
  SuperScales out{read_at<Half>(block, 80), read_at<Half>(block, 82), {}, {}};
  for (int group = 0; group < 16; ++group) {
    const int byte = int(block[group]);
    out.scales[group] = int8_t(byte & 15);
    out.minima[group] = int8_t(byte >> 4);
  }
  return out;
}

// u8 high[32], pairs[64], groups[12], f16 scale: 6 bits less 32, nibbles first, then pairs.
SuperScales q3_k_scales(const std::byte* block) {
  SuperScales out{read_at<Half>(block, 108), Half{}, {}, {}};
  for (int group = 0; group < 16; ++group) {
    const int low = int(block[96 + group % 8]) >> (4 * (group / 8)) & 15;
    const int high = int(block[104 + group % 4]) >> (2 * (group / 4)) & 3;
    out.scales[group] = int8_t((low | high << 4) - 32);
  }
  return out;
}

// f16 scale, min, u8 groups[12]; the same in Q4_K and Q5_K.
SuperScales q45_k_scales(const std::byte* block) {
  SuperScales out{read_at<Half>(block, 0), read_at<Half>(block, 2), {}, {}};
  uint8_t bytes[12];
  std::memcpy(bytes, block + 4, sizeof bytes);
  const quant::KScales groups = quant::unpack_k_scales(bytes);
  for (int unit = 0; unit < 8; ++unit) {
    out.scales[unit] = int8_t(groups.scale[unit]);
    out.minima[unit] = int8_t(groups.min[unit]);
  }
  return out;
}

// u8 nibbles[128], high[64], i8 groups[16], f16 scale.
SuperScales q6_k_scales(const std::byte* block) {
  SuperScales out{read_at<Half>(block, 208), Half{}, {}, {}};
  std::memcpy(out.scales, block + 192, 16);
  return out;
}

// f16 scale, u8 high[2], u8 low[4]: 6 bits less 32.
SuperScales iq4_xs_scales(const std::byte* block) {
  SuperScales out{read_at<Half>(block, 0), Half{}, {}, {}};
  const int highs = int(block[2]) | int(block[3]) << 8;
  for (int unit = 0; unit < 8; ++unit) {
    const int low = int(block[4 + unit / 2]) >> (4 * (unit % 2)) & 15;
    out.scales[unit] = int8_t((low | (highs >> (2 * unit) & 3) << 4) - 32);
  }
  return out;
}

constexpr int8_t kIq1Levels[16] = {-9, -7, -1, 1, 7, 9};
constexpr int8_t kIq2Levels[16] = {-43, -25, -8, 8, 25, 43};
constexpr int8_t kIq3XxsLevels[16] = {-62, -52, -44, -36, -28, -20, -12, -4,
                                      4,   12,  20,  28,  36,  44,  52,  62};
constexpr int8_t kIq3Levels[16] = {-15, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15};

struct NamedRule {
  std::string_view name;
  Plane plane;
  Scales scales;
  int32_t bias = 0;
  const int8_t* levels = nullptr;
  SuperScales (*super_scales)(const std::byte* block) = nullptr;
};

constexpr NamedRule kRules[] = {
    {"Q4_0", Plane::nibbles, Scales::half, 8},
    {"Q4_1", Plane::nibbles, Scales::half, 0},
    {"Q5_0", Plane::bits5, Scales::half, 16},
    {"Q5_1", Plane::bits5, Scales::half, 0},
    {"Q8_0", Plane::bytes, Scales::half},
    {"Q2_K", Plane::nibbles, Scales::super, 0, nullptr, q2_k_scales},
    {"Q3_K", Plane::nibbles, Scales::super, 4, nullptr, q3_k_scales},
    {"Q4_K", Plane::nibbles, Scales::super, 0, nullptr, q45_k_scales},
    {"Q5_K", Plane::bits5, Scales::super, 0, nullptr, q45_k_scales},
    {"Q6_K", Plane::bits6, Scales::super, 32, nullptr, q6_k_scales},
    {"TQ1_0", Plane::nibbles, Scales::half, 1},
    {"TQ2_0", Plane::nibbles, Scales::half, 1},
    {"IQ4_NL", Plane::table, Scales::half, 0, quant::kIq4Levels},
    {"IQ4_XS", Plane::table, Scales::super, 0, quant::kIq4Levels, iq4_xs_scales},
    {"MXFP4", Plane::table, Scales::full, 0, quant::kFp4Levels},
    {"NVFP4", Plane::table, Scales::half, 0, quant::kFp4Levels},
    {"IQ1_S", Plane::table, Scales::full, 0, kIq1Levels},
    {"IQ1_M", Plane::table, Scales::full, 0, kIq1Levels},
    {"IQ2_XXS", Plane::table, Scales::full, 0, kIq2Levels},
    {"IQ2_XS", Plane::table, Scales::full, 0, kIq2Levels},
    {"IQ2_S", Plane::table, Scales::full, 0, kIq2Levels},
    {"IQ3_XXS", Plane::table, Scales::full, 0, kIq3XxsLevels},
    {"IQ3_S", Plane::table, Scales::full, 0, kIq3Levels},
    {"F16", Plane::f16, Scales::full},
    {"BF16", Plane::bf16, Scales::full},
    {"F32", Plane::f32, Scales::full},
};

}  // namespace

FormatRule format_rule(const quant::Type& type) {
  FormatRule rule;
  rule.form.halves = type.halves;
  rule.form.offsets = type.offsets;
  for (const NamedRule& named : kRules) {
    if (named.name != type.name) continue;
    rule.form.plane = named.plane;
    rule.form.scales = named.scales;
    rule.form.bias = named.bias;
    rule.super_scales = named.super_scales;
    if (named.levels != nullptr) std::memcpy(rule.form.table, named.levels, 16);
  }
  return rule;
}

}  // namespace cairn::cpu
