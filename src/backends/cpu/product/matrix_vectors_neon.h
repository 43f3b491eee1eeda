// The vectors that the matrix kernels are written in, for 64-bit ARM with the dot product of signed
// bytes: eight outputs in two registers. No weight of any plane exceeds 127, so all of them may be
// multiplied as signed bytes, and sums are exact in 32 bits without a correction.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "backends/cpu/product/product.h"

namespace cairn::neon {
namespace {

struct MatrixVectors {
  static constexpr int kLanes = 8;            // Outputs of a vector.
  static constexpr bool kSignedBytes = true;  // Signed planes multiply as they are.
  static constexpr int kTileRows = 4;         // 8 + 8 registers of sums, of 32.
  static constexpr int kTileVectors = 1;
  static constexpr int kBlockRows = 4;
  static constexpr int kChunkRows = cpu::kChunkRows, kPanels = cpu::kPanels;  // At a time.
  static constexpr int kDirectRows = 12;  // More of them multiply panels.
  static constexpr int kRowGroups = 1;    // Groups that a row alone multiplies side by side.

  using Bytes = uint8x16x2_t;
  using Ints = int32x4x2_t;
  using Floats = float32x4x2_t;

  static Bytes load(const uint8_t* at) { return {{vld1q_u8(at), vld1q_u8(at + 16)}}; }
  static void store(uint8_t* at, Bytes bytes) {
    vst1q_u8(at, bytes.val[0]);
    vst1q_u8(at + 16, bytes.val[1]);
  }
  static Bytes mask(Bytes bytes, uint8_t bits) {
    const uint8x16_t kept = vdupq_n_u8(bits);
    return {{vandq_u8(bytes.val[0], kept), vandq_u8(bytes.val[1], kept)}};
  }
  static Bytes either(Bytes a, Bytes b) {
    return {{vorrq_u8(a.val[0], b.val[0]), vorrq_u8(a.val[1], b.val[1])}};
  }
  static Bytes flip_sign(Bytes bytes) {
    const uint8x16_t sign = vdupq_n_u8(0x80);
    return {{veorq_u8(bytes.val[0], sign), veorq_u8(bytes.val[1], sign)}};
  }
  // Left for positive counts, right for negative ones, each byte by itself.
  template <int kCount>
  static Bytes shift(Bytes bytes) {
    if constexpr (kCount > 0) {
      return {{vshlq_n_u8(bytes.val[0], kCount), vshlq_n_u8(bytes.val[1], kCount)}};
    }
    if constexpr (kCount < 0) {
      return {{vshrq_n_u8(bytes.val[0], -kCount), vshrq_n_u8(bytes.val[1], -kCount)}};
    }
    return bytes;
  }
  static Bytes load_table(const int8_t* table) {
    const uint8x16_t levels = vreinterpretq_u8_s8(vld1q_s8(table));
    return {{levels, levels}};
  }
  static Bytes look_up(Bytes table, Bytes codes) {
    return {{vqtbl1q_u8(table.val[0], codes.val[0]), vqtbl1q_u8(table.val[1], codes.val[1])}};
  }

  static Floats zero() { return broadcast(0); }
  static Floats load(const float* at) { return {{vld1q_f32(at), vld1q_f32(at + 4)}}; }
  static void store(float* at, Floats values) {
    vst1q_f32(at, values.val[0]);
    vst1q_f32(at + 4, values.val[1]);
  }
  static Floats broadcast(float value) { return {{vdupq_n_f32(value), vdupq_n_f32(value)}}; }
  static Floats add(Floats a, Floats b) {
    return {{vaddq_f32(a.val[0], b.val[0]), vaddq_f32(a.val[1], b.val[1])}};
  }
  static Floats mul(Floats a, Floats b) {
    return {{vmulq_f32(a.val[0], b.val[0]), vmulq_f32(a.val[1], b.val[1])}};
  }
  static Floats fma(Floats a, Floats b, Floats c) {
    return {{vfmaq_f32(c.val[0], a.val[0], b.val[0]), vfmaq_f32(c.val[1], a.val[1], b.val[1])}};
  }
  // *a * b + c.
  static Floats fma_of(const float* a, Floats b, Floats c) { return fma(broadcast(*a), b, c); }
  static Floats to_floats(Ints ints) {
    return {{vcvtq_f32_s32(ints.val[0]), vcvtq_f32_s32(ints.val[1])}};
  }
  static Floats load_f16(const uint8_t* at) {
    const float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(at));
    return {{vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)}};
  }
  static Floats load_bf16(const uint8_t* at) {
    const uint16x8_t halves = vreinterpretq_u16_u8(vld1q_u8(at));
    return {{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(halves), 16)),
             vreinterpretq_f32_u32(vshll_high_n_u16(halves, 16))}};
  }
  static Floats load_f32(const uint8_t* at) {
    return {{vreinterpretq_f32_u8(vld1q_u8(at)), vreinterpretq_f32_u8(vld1q_u8(at + 16))}};
  }
  static Floats load_i8(const uint8_t* at) {
    const int16x8_t words = vmovl_s8(vreinterpret_s8_u8(vld1_u8(at)));
    return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))}};
  }
  static void prefetch(const uint8_t* at) { __builtin_prefetch(at, 0, 3); }

  // The weights of one vector, ready to multiply any number of rows.
  template <cpu::Plane>
  struct Weights {
    int8x16_t low, high;
    explicit Weights(Bytes weights)
        : low(vreinterpretq_s8_u8(weights.val[0])), high(vreinterpretq_s8_u8(weights.val[1])) {}
  };

  // An exact sum of kSteps vectors times activations.
  template <cpu::Plane plane, int kSteps, int>
  struct Dot {
    int32x4_t low, high;
    void start(int32_t value) { low = high = vdupq_n_s32(value); }
    template <int kStep>
    void add(const Weights<plane>& weights, const int8_t* x) {
      int32_t four;
      std::memcpy(&four, x, 4);
      const int8x16_t activations = vreinterpretq_s8_s32(vdupq_n_s32(four));
      low = vdotq_s32(low, weights.low, activations);
      high = vdotq_s32(high, weights.high, activations);
    }
    Ints total() const { return {{low, high}}; }
  };
};

}  // namespace
}  // namespace cairn::neon
