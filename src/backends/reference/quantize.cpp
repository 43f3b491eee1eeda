// op::Quantize: activations in blocks of 32 as int8 with one f32 scale each, and the sums of 16
// that formats with offsets need. Defines the rounding; knows no weights.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/reference/kernels.h"
#include "backends/reference/row_kernel.h"

namespace cairn::reference {
namespace {

// s = amax / 127; q = x / s rounded to nearest, ties to even, kept within -127 … 127 (only a
// subnormal s can leave them); s = 0 gives zeros. A block with an infinity or a NaN has the scale
// NaN and zeros: what is computed from it is NaN, as it is in real arithmetic.
float quantize_block(const float* x, int8_t* q) {
  uint32_t amax_bits = 0;  // Magnitudes order as their bits do, infinity and NaN above all.
  for (int i = 0; i < 32; ++i) {
    amax_bits = std::max(amax_bits, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  if (amax_bits >= 0x7f800000u) {
    std::fill_n(q, 32, int8_t{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float s = std::bit_cast<float>(amax_bits) / 127.0f;
  for (int i = 0; i < 32; ++i) {
    const float scaled = s == 0 ? 0.0f : std::clamp(x[i] / s, -127.0f, 127.0f);
    q[i] = int8_t(std::nearbyint(scaled));
  }
  return s;
}

void quantize_row(const op::Quantize& op, const Step& step, int32_t row) {
  const float* x = step.row(op.x, row);
  std::byte* bytes = step.row(op.out, row);
  auto* q = reinterpret_cast<int8_t*>(bytes);
  auto* scales = reinterpret_cast<float*>(bytes + op.out.scales_offset());
  auto* sums = reinterpret_cast<int32_t*>(bytes + op.out.sums_offset());
  for (int32_t first = 0; first < op.out.width; first += 32) {
    scales[first / 32] = quantize_block(x + first, q + first);
  }
  for (int32_t first = 0; first < op.out.width; first += 16) {
    int32_t sum = 0;
    for (int32_t i = first; i < first + 16; ++i) sum += q[i];
    sums[first / 16] = sum;
  }
}

}  // namespace

host::HostKernel quantize_kernel() {
  return row_kernel<op::Quantize, quantize_row>();
}

}  // namespace cairn::reference
