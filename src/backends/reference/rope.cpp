// Rotary position embedding (Su et al., 2021): the table of a step's angles, the rotation by it,
// and the query scale that grows with the position.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/position_scale.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"

namespace cairn::reference {
namespace {

void rope_table(const op::RopeTable& op, const Step& step, int32_t row) {
  const double position = step.positions[size_t(row)];
  const std::span<float> out = row_of(step, op.out, row);
  for (size_t pair = 0; pair < size_t(op.pair_count); ++pair) {
    double sine = 0, cosine = 0;
    elementary::sincos(position * op.frequencies[pair], sine, cosine);
    out[2 * pair] = float(cosine * op.magnitude);
    out[2 * pair + 1] = float(sine * op.magnitude);
  }
}

void rotate(float& x0, float& x1, float cosine, float sine) {
  const float y0 = std::fma(x0, cosine, -(x1 * sine));
  const float y1 = std::fma(x0, sine, x1 * cosine);
  x0 = y0;
  x1 = y1;
}

void rope(const op::Rope& op, const Step& step, int32_t row) {
  const std::span<const float> table = row_of(step, op.table, row);
  const std::span<float> x = row_of(step, op.x, row);
  const size_t pair_count = size_t(op.pair_count);
  for (size_t head = 0; head < x.size(); head += size_t(op.head_dim)) {
    for (size_t pair = 0; pair < pair_count; ++pair) {
      const bool halves = op.style == RopeStyle::halves;
      const size_t first = head + (halves ? pair : 2 * pair);
      rotate(x[first], x[first + (halves ? pair_count : 1)], table[2 * pair], table[2 * pair + 1]);
    }
  }
}

void scale_by_position(const op::ScaleByPosition& op, const Step& step, int32_t row) {
  const float factor = position_scale(op, step.positions[size_t(row)]);
  for (float& value : row_of(step, op.x, row)) value *= factor;
}

}  // namespace

float position_scale(const op::ScaleByPosition& op, int32_t position) {
  // log(1 + whole) in f64: whole + 1 = fraction * 2^exponent with the fraction in
  // [sqrt(1/2), sqrt(2)), and log(fraction) = 2 artanh(s), s = (fraction - 1) / (fraction + 1),
  // |s| <= 0.1716. The first term left out is below 2 s^23 / 23 < 1e-18.
  int exponent = 0;
  const int64_t whole = (int64_t(position) + op.offset) / op.original_context;
  double fraction = std::frexp(double(whole) + 1.0, &exponent);
  if (fraction < 0.70710678118654752) {
    fraction *= 2;
    --exponent;
  }
  const double s = (fraction - 1) / (fraction + 1);
  double series = 0;
  for (int power = 21; power >= 1; power -= 2) series = std::fma(series, s * s, 1.0 / power);
  const double logarithm = std::fma(double(exponent), 0.69314718055994531, 2 * s * series);
  return float(std::fma(op.factor, logarithm, 1.0));
}

host::HostKernel rope_table_kernel() {
  return row_kernel<op::RopeTable, rope_table>();
}
host::HostKernel rope_kernel() {
  return row_kernel<op::Rope, rope>();
}
host::HostKernel scale_by_position_kernel() {
  return row_kernel<op::ScaleByPosition, scale_by_position>();
}

}  // namespace cairn::reference
