// The matrix kernels for 64-bit ARM with the dot product, and the quantizer of activations.
#include "backends/cpu/product/matrix_vectors_neon.h"
#include "backends/cpu/product/product_any.h"

namespace cairn::neon {
namespace {

// One block of 32, as docs/numerics.md defines it: a block with an infinity or a NaN gets the scale
// NaN and zeros.
void quantize_block(const float* x, int8_t* q, float* scale, int32_t* sums) {
  float32x4_t values[8];
  uint32x4_t largest = vdupq_n_u32(0);
  for (int i = 0; i < 8; ++i) {
    values[i] = vld1q_f32(x + 4 * i);
    const uint32x4_t bits = vreinterpretq_u32_f32(values[i]);
    largest = vmaxq_u32(largest, vandq_u32(bits, vdupq_n_u32(0x7fffffffu)));
  }
  const uint32_t amax_bits = vmaxvq_u32(largest);
  float amax;
  std::memcpy(&amax, &amax_bits, 4);
  const float s = amax / 127.0f;
  int32x4_t rounded[8];
  for (int32x4_t& part : rounded) part = vdupq_n_s32(0);
  if (amax_bits >= 0x7f800000u) {
    const uint32_t nan_bits = 0x7fc00000u;
    std::memcpy(scale, &nan_bits, 4);
  } else {
    *scale = s;
    const float32x4_t high = vdupq_n_f32(127.0f), low = vdupq_n_f32(-127.0f);
    for (int i = 0; s != 0 && i < 8; ++i) {
      const float32x4_t y = vdivq_f32(values[i], vdupq_n_f32(s));
      rounded[i] = vcvtnq_s32_f32(vmaxq_f32(vminq_f32(y, high), low));
    }
  }
  for (int half = 0; half < 2; ++half) {
    const int32x4_t* part = rounded + 4 * half;
    const int16x8_t first = vmovn_high_s32(vmovn_s32(part[0]), part[1]);
    const int16x8_t second = vmovn_high_s32(vmovn_s32(part[2]), part[3]);
    vst1q_s8(q + 16 * half, vmovn_high_s16(vmovn_s16(first), second));
    sums[half] = vaddvq_s32(vaddq_s32(vaddq_s32(part[0], part[1]), vaddq_s32(part[2], part[3])));
  }
}

void quantize(const float* x, int64_t count, int8_t* q, float* scales, int32_t* sums) {
  for (int64_t first = 0; first < count; first += 32) {
    quantize_block(x + first, q + first, scales + first / 32, sums + first / 16);
  }
}

}  // namespace

constinit const cpu::MatrixKernels matrix_kernels{.multiply = cpu::multiply_any<MatrixVectors>,
                                                  .quantize = quantize};

}  // namespace cairn::neon
